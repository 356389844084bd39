package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Claim is the claim of a set's pod for its data.
type Claim struct {
	Name string
	Size string // asked for, as Kubernetes writes it
	// Unbound says that it has had no volume yet, and so no data.
	Unbound bool
	// Goes says that it is being deleted: it stays as long as a pod uses it, and nothing takes that back.
	Goes bool
	// Annotations are all that the claim has.
	Annotations map[string]string

	uid    string
	owners []string
}

// Restoring reports whether a restore into the claim was begun, and not finished.
func (c *Claim) Restoring() bool { return strings.HasPrefix(c.Annotations[RestoreKey], restoring) }

// Restored reports whether a backup was restored into the claim.
func (c *Claim) Restored() bool { return strings.HasPrefix(c.Annotations[RestoreKey], restored) }

// OwnedBy reports whether the claim is deleted with a set.
func (c *Claim) OwnedBy(s *Set) bool {
	for _, uid := range c.owners {
		if uid == s.uid {
			return true
		}
	}
	return false
}

// ClaimName is the name of the claim of a set's pod for its data.
func ClaimName(set string, ordinal int) string { return fmt.Sprintf("data-%s-%d", set, ordinal) }

// Claim returns the claim of a set's pod for its data; false: there is none.
func (c *Client) Claim(ctx context.Context, set string, ordinal int) (Claim, bool, error) {
	var o struct {
		Metadata struct {
			UID               string            `json:"uid"`
			Annotations       map[string]string `json:"annotations"`
			DeletionTimestamp *string           `json:"deletionTimestamp"`
			OwnerReferences   []struct {
				UID string `json:"uid"`
			} `json:"ownerReferences"`
		} `json:"metadata"`
		Spec struct {
			claimSpec
			Volume string `json:"volumeName"`
		} `json:"spec"`
		Status struct {
			Phase string `json:"phase"`
		} `json:"status"`
	}
	name := ClaimName(set, ordinal)
	err := c.call(ctx, http.MethodGet, c.path("api/v1", "persistentvolumeclaims", name), nil, &o)
	if missing(err) {
		return Claim{}, false, nil
	}
	if err != nil {
		return Claim{}, false, fmt.Errorf("the claim %s: %w", name, err)
	}
	claim := Claim{Name: name, Size: o.Spec.Resources.Requests.Storage, Unbound: o.Status.Phase == "Pending" && o.Spec.Volume == "",
		Goes: o.Metadata.DeletionTimestamp != nil, Annotations: o.Metadata.Annotations, uid: o.Metadata.UID}
	for _, owner := range o.Metadata.OwnerReferences {
		claim.owners = append(claim.owners, owner.UID)
	}
	return claim, true, nil
}

// Expand has a claim ask for more. With try nothing changes: Kubernetes tells whether it would, as it does not
// where the claim has no volume yet, or its storage class has no allowVolumeExpansion.
func (c *Client) Expand(ctx context.Context, claim *Claim, size string, try bool) error {
	path := c.path("api/v1", "persistentvolumeclaims", claim.Name) + "?fieldManager=trireme"
	if try {
		path += "&dryRun=All"
	}
	var want claimSpec
	want.Resources.Requests.Storage = size
	return c.call(ctx, http.MethodPatch, path, map[string]any{"metadata": map[string]string{"uid": claim.uid}, "spec": want}, nil)
}

// Annotate gives a claim annotations, beside those that it has.
func (c *Client) Annotate(ctx context.Context, claim *Claim, annotations map[string]string) error {
	return c.call(ctx, http.MethodPatch, c.path("api/v1", "persistentvolumeclaims", claim.Name)+"?fieldManager=trireme",
		map[string]any{"metadata": map[string]any{"uid": claim.uid, "annotations": annotations}}, nil)
}

// leaveEvery is how often SetAside looks whether a set is gone.
const leaveEvery = 200 * time.Millisecond

// SetAside deletes a set and leaves its pods and claims as they are: a set of that name that is made afterwards
// takes them over. It waits until the set is gone, since one that is going would take a change and lose it.
func (c *Client) SetAside(ctx context.Context, s *Set) error {
	path := c.path("apis/apps/v1", "statefulsets", s.Name)
	err := c.call(ctx, http.MethodDelete, path, map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan",
		"preconditions": map[string]string{"uid": s.uid}}, nil)
	for err == nil {
		var now Set
		if now, err = c.Set(ctx, s.Name); err == nil && now.uid != s.uid {
			return nil
		}
		select {
		case <-ctx.Done():
			err = errors.New("it is being deleted and not gone yet; its pods run on, and so they do afterwards")
		case <-time.After(leaveEvery):
		}
	}
	if missing(err) {
		return nil
	}
	return fmt.Errorf("the StatefulSet %s cannot be set aside: %w", s.Name, err)
}

// TryTemplate asks whether Kubernetes would take a set with pods of this template, and changes nothing. refused is what it says against the
// template; an error is one of asking.
func (c *Client) TryTemplate(ctx context.Context, s *Set, template map[string]any) (refused string, err error) {
	path := c.path("apis/apps/v1", "statefulsets", s.Name)
	var set map[string]any
	if err := c.call(ctx, http.MethodGet, path, nil, &set); err != nil {
		return "", fmt.Errorf("the StatefulSet %s: %w", s.Name, err)
	}
	spec, _ := set["spec"].(map[string]any)
	metadata, _ := set["metadata"].(map[string]any)
	if spec == nil || metadata == nil {
		return "", fmt.Errorf("the StatefulSet %s is none: it has no spec", s.Name)
	}
	// The labels by which the set finds its pods are its own, if the template is that of another one.
	selector, _ := spec["selector"].(map[string]any)
	own, _ := selector["matchLabels"].(map[string]any)
	spec["template"] = withLabels(template, own)
	delete(metadata, "resourceVersion") // whatever else changes it meanwhile
	delete(metadata, "managedFields")
	err = c.call(ctx, http.MethodPut, path+"?dryRun=All", set, nil)
	var r *refusal
	if errors.As(err, &r) && (r.code == http.StatusUnprocessableEntity || strings.Contains(r.text, "denied the request")) { // the latter by a policy
		return r.Error(), nil
	}
	return "", err
}

// withLabels is a template whose pods have these labels, too.
func withLabels(template, labels map[string]any) map[string]any {
	template = maps.Clone(template)
	metadata, _ := template["metadata"].(map[string]any)
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	all, _ := metadata["labels"].(map[string]any)
	if all = maps.Clone(all); all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, labels)
	metadata["labels"], template["metadata"] = all, metadata
	return template
}

// Quantity reads a number of bytes as Kubernetes writes it: 1.5Gi, 2G (10^9 each), 2e9.
func Quantity(text string) (int64, error) {
	units := []struct {
		suffix string
		bytes  float64
	}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40}, {"Pi", 1 << 50}, {"Ei", 1 << 60},
		{"m", 1e-3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"E", 1e18}, {"", 1}}
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(digits, 64)
		if n = math.Ceil(n * u.bytes); err != nil || !(n >= 1 && n < 1<<62) {
			break
		}
		return int64(n), nil
	}
	return 0, fmt.Errorf("%q is no quantity of bytes, as 2Gi", text)
}
