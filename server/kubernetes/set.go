package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Set is a StatefulSet as it is to be.
type Set struct {
	Name string
	// Lasts says that a member that has no place in the set is to leave. A set that ends, is gone, or is to have no pods for a while says
	// nothing of members: they stay what they are. SetAmong knows of sets that are gone for good.
	Lasts bool
	// Pods with numbers from Start up to End, which is not among them, are to be there.
	Start, End int
	// Size is what claims for data ask for that the set makes, and Class the storage class; empty: the default one.
	Size, Class string
	// Modes and Annotations are those of these claims.
	Modes       []string
	Annotations map[string]string
	// Scaled says that the number of pods was set by `kubectl`, or through the set's scale as autoscalers do.
	Scaled bool
	// Release is the release of Helm that the set is of; empty: something else has made it.
	Release string

	uid   string
	goes  bool     // it is being deleted
	group []string // all sets of its group that there are to be, as it says; nil: it says nothing
}

// PodsMax is up to which number a set's pods, and their claims, are looked for: as many as the chart allows read replicas, and as its
// Roles name claims.
const PodsMax = 99

// setsKey is the annotation of a set with the names of all sets of its group, parted by commas: those that there are to be from
// now on, also if they have no pods for a while. One that is gone and not among them is not set aside to be made anew.
const setsKey = "trireme.io/sets"

// Exists reports whether there is such a set at all.
func (s *Set) Exists() bool { return s.uid != "" }

// Pods is how many pods the set is to have.
func (s *Set) Pods() int { return s.End - s.Start }

// claimSpec is what a claim asks for.
type claimSpec struct {
	Class     string   `json:"storageClassName,omitempty"`
	Modes     []string `json:"accessModes,omitempty"`
	Resources struct {
		Requests struct {
			Storage string `json:"storage"`
		} `json:"requests"`
	} `json:"resources"`
}

// manager is somebody who has set fields of an object.
type manager struct {
	Manager     string `json:"manager"`
	Subresource string `json:"subresource"`
	Fields      struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	} `json:"fieldsV1"`
}

// scaled reports whether that one has set the number of pods, and is not what has made the set.
func (m *manager) scaled() bool {
	_, has := m.Fields.Spec["f:replicas"]
	return has && (m.Subresource == "scale" || strings.HasPrefix(m.Manager, "kubectl"))
}

// Has reports whether the set is to have a pod of that number.
func (s *Set) Has(ordinal int) bool { return ordinal >= s.Start && ordinal < s.End }

// Set asks how many pods a set is to have from now on.
func (c *Client) Set(ctx context.Context, name string) (Set, error) {
	var set struct {
		Metadata struct {
			UID               string            `json:"uid"`
			Annotations       map[string]string `json:"annotations"`
			DeletionTimestamp *string           `json:"deletionTimestamp"`
			ManagedFields     []manager         `json:"managedFields"`
		} `json:"metadata"`
		Spec struct {
			Replicas *int `json:"replicas"`
			Ordinals struct {
				Start int `json:"start"`
			} `json:"ordinals"`
			Claims []struct {
				Metadata struct {
					Name        string            `json:"name"`
					Annotations map[string]string `json:"annotations"`
				} `json:"metadata"`
				Spec claimSpec `json:"spec"`
			} `json:"volumeClaimTemplates"`
		} `json:"spec"`
	}
	err := c.call(ctx, http.MethodGet, c.path("apis/apps/v1", "statefulsets", name), nil, &set)
	if missing(err) {
		return Set{Name: name}, nil
	}
	if err != nil {
		return Set{}, fmt.Errorf("the StatefulSet %s: %w", name, err)
	}
	s := Set{Name: name, Start: set.Spec.Ordinals.Start, uid: set.Metadata.UID, goes: set.Metadata.DeletionTimestamp != nil}
	s.Release = set.Metadata.Annotations["meta.helm.sh/release-name"]
	if names := set.Metadata.Annotations[setsKey]; names != "" {
		s.group = strings.Split(names, ",")
	}
	s.End = s.Start
	if set.Spec.Replicas != nil {
		s.End += *set.Spec.Replicas
	}
	s.Lasts = s.Pods() > 0 && !s.goes
	s.Scaled = slices.ContainsFunc(set.Metadata.ManagedFields, func(m manager) bool { return m.scaled() })
	for _, c := range set.Spec.Claims {
		if c.Metadata.Name == "data" {
			s.Size, s.Class = c.Spec.Resources.Requests.Storage, c.Spec.Class
			s.Modes, s.Annotations = c.Spec.Modes, c.Metadata.Annotations
		}
	}
	return s, nil
}

// SetAmong asks as Set does for one of a group's sets. One that is being deleted or is gone lasts, without pods, if another set of the group
// that lasts says that there is to be none of that name: its members are to leave. If none says so it may be set aside.
func (c *Client) SetAmong(ctx context.Context, name string, group []string) (Set, error) {
	s, err := c.Set(ctx, name)
	if err != nil || s.Exists() && !s.goes {
		return s, err
	}
	for _, other := range group {
		if other == name {
			continue
		}
		// It is asked after the one that is gone: what it says is no older.
		o, err := c.Set(ctx, other)
		if err != nil {
			return Set{}, err
		}
		if o.Lasts && o.group != nil && !slices.Contains(o.group, name) {
			s.Lasts, s.End = true, s.Start
		}
	}
	return s, nil
}

// Place is the set of the pod in a host's name or an address, and the pod's number in it.
func Place(address string) (set string, ordinal int, ok bool) {
	pod, _, _ := strings.Cut(address, ".")
	i := strings.LastIndexByte(pod, '-')
	if i <= 0 {
		return "", 0, false
	}
	ordinal, err := strconv.Atoi(pod[i+1:])
	return pod[:i], ordinal, err == nil && ordinal >= 0
}

// DeleteClaim deletes a claim, and no other that has got its name meanwhile. As long as a pod uses it, Kubernetes
// keeps it.
func (c *Client) DeleteClaim(ctx context.Context, claim *Claim) error {
	err := c.call(ctx, http.MethodDelete, c.path("api/v1", "persistentvolumeclaims", claim.Name),
		map[string]any{"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": map[string]string{"uid": claim.uid}}, nil)
	if missing(err) {
		return nil
	}
	return err
}

// Kinds of events.
const (
	Warning = "Warning"
	Normal  = "Normal"
)

// Tell makes an event of a set, which `kubectl describe` and `kubectl get events` show for an hour.
func (c *Client) Tell(ctx context.Context, s *Set, kind, reason, message string) error {
	now := time.Now().UTC()
	const noteMax = 1024 // of the API
	return c.call(ctx, http.MethodPost, c.path("api/v1", "events", ""), map[string]any{
		"metadata":       map[string]any{"generateName": s.Name + ".", "namespace": c.namespace},
		"involvedObject": map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": s.Name, "namespace": c.namespace, "uid": s.uid},
		"type":           kind, "reason": reason, "message": message[:min(len(message), noteMax)], "source": map[string]any{"component": "trireme"},
		"firstTimestamp": now.Format(time.RFC3339), "lastTimestamp": now.Format(time.RFC3339), "count": 1,
	}, nil)
}
