package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Restore gives the first pod of a StatefulSet that is not there yet a claim, and has a Job put data into it.
//
// Invariant: where there are the set or claims of its pods, which may hold data, nothing is made: neither a claim nor a
// Job. So it may be run again at any time, by tools that take each change for an installation as well. The one claim that
// it goes on with is that which an earlier run has made, as an annotation says, and has not finished.
type Restore struct {
	Client *Client
	Sets   []string        // of members; the first one's first pod gets the data
	Claim  json.RawMessage // the manifests
	Job    json.RawMessage
	Say    func(format string, a ...any)
	Poll   time.Duration // how often the Job is looked at
}

const (
	// RestoreKey is the annotation of the claim and of the Job: what is restored, and, of the claim, whether it is done.
	RestoreKey = "trireme.io/restore"
	// claimKey is the annotation of the Job with the UID of the claim into which it restores.
	claimKey  = "trireme.io/claim"
	restoring = "begun: "
	restored  = "done: "
)

type metadata struct {
	Name        string            `json:"name"`
	UID         string            `json:"uid"`
	Annotations map[string]string `json:"annotations"`
	Deleted     *string           `json:"deletionTimestamp"`
}

type claim struct {
	Metadata metadata `json:"metadata"`
}

type job struct {
	Metadata metadata `json:"metadata"`
	Status   struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type condition struct{ Type, Status, Reason, Message string }

// has reports whether the job has come to an end of a kind: Complete or Failed.
func (j *job) has(end string) bool {
	for _, c := range j.Status.Conditions {
		if c.Type == end && c.Status == "True" {
			return true
		}
	}
	return false
}

// rightsWait is how long rights may take to be in force.
const rightsWait = time.Minute

// Run returns when the data are there, or there is nothing to do.
func (r *Restore) Run(ctx context.Context) (err error) {
	rights, cancel := context.WithTimeout(ctx, rightsWait)
	defer cancel()
	if err := r.Client.AwaitRights(rights, r.Sets[0]); err != nil && !Passes(err) {
		return err
	}
	var into *claim
	if err := r.again(ctx, func() error { into, err = r.begin(ctx); return err }); into == nil || err != nil {
		return err
	}
	var made, what string
	if err := r.again(ctx, func() error { made, what, err = r.job(ctx, into); return err }); err != nil {
		return fmt.Errorf("the Job %s: %w", made, err)
	}
	r.Say("the Job %s restores %s into %s", made, what, into.Metadata.Name)
	said, err := r.await(ctx, made)
	if err != nil {
		return err
	}
	r.Say("%s", said)
	done := map[string]any{"metadata": map[string]any{"annotations": map[string]string{RestoreKey: restored + what + ": " + said}}}
	if err := r.again(ctx, func() error {
		return r.Client.call(ctx, http.MethodPatch, r.Client.claimPath(into.Metadata.Name), done, nil)
	}); err != nil {
		return err
	}
	return r.removeJob(ctx, made) // Kubernetes keeps a claim as long as there is a pod that has used it
}

// again has a step done again while its errors may pass by themselves. Each finds what was made before, also by a call whose answer was lost.
func (r *Restore) again(ctx context.Context, step func() error) error {
	said := ""
	for {
		err := step()
		if !Passes(err) || ctx.Err() != nil {
			return err
		}
		if text := err.Error(); text != said {
			r.Say("it is tried again: %s", text)
			said = text
		}
		if r.pause(ctx) != nil {
			return err
		}
	}
}

func (c *Client) claimPath(name string) string {
	return c.path("api/v1", "persistentvolumeclaims", name)
}

func (c *Client) jobPath(name string) string { return c.path("apis/batch/v1", "jobs", name) }

// begin returns the claim to restore into; nil: there are data, or there may be.
func (r *Restore) begin(ctx context.Context) (*claim, error) {
	var own claim
	if err := json.Unmarshal(r.Claim, &own); err != nil {
		return nil, err
	}
	there, err := r.others(ctx, own.Metadata.Name)
	if err != nil {
		return nil, err
	}
	if there != "" {
		r.Say("%s is there already: nothing is restored", there)
		return nil, nil
	}
	is, err := r.claim(ctx, own.Metadata.Name)
	switch {
	case missing(err):
		return r.makeClaim(ctx)
	case err != nil:
		return nil, err
	case is.Metadata.Deleted != nil:
		return nil, fmt.Errorf("the claim %s is being deleted: wait until it is gone, and begin anew", is.Metadata.Name)
	}
	if !strings.HasPrefix(is.Metadata.Annotations[RestoreKey], restoring) {
		r.Say("the claim %s is there already, and what is in it: nothing is restored", is.Metadata.Name)
		return nil, nil
	}
	return is, nil
}

// others finds a set, or a claim of its pods, beside the claim that is to be made; "": there is none.
func (r *Restore) others(ctx context.Context, own string) (there string, err error) {
	for _, set := range r.Sets {
		s, err := r.Client.Set(ctx, set)
		if err != nil {
			return "", err
		}
		if s.uid != "" {
			return "the StatefulSet " + set, nil
		}
		for i := range PodsMax {
			name := ClaimName(set, i)
			if name == own {
				continue
			}
			if _, err := r.claim(ctx, name); err == nil {
				return "the claim " + name + " of a member", nil
			} else if !missing(err) {
				return "", err
			}
		}
	}
	return "", nil
}

func (r *Restore) claim(ctx context.Context, name string) (*claim, error) {
	c := &claim{}
	if err := r.Client.call(ctx, http.MethodGet, r.Client.claimPath(name), nil, c); err != nil {
		return nil, fmt.Errorf("the claim %s: %w", name, err)
	}
	return c, nil
}

// makeClaim makes it, marked as one without data.
func (r *Restore) makeClaim(ctx context.Context) (*claim, error) {
	m, err := annotated(r.Claim, RestoreKey, restoring)
	if err != nil {
		return nil, err
	}
	c := &claim{}
	if err := r.Client.call(ctx, http.MethodPost, r.Client.claimPath(""), m, c); err != nil {
		return nil, fmt.Errorf("making the claim for the data: %w", err)
	}
	r.Say("made the claim %s", c.Metadata.Name)
	return c, nil
}

// annotated is a manifest with one more annotation.
func annotated(manifest json.RawMessage, key, value string) (m map[string]any, err error) {
	if err := json.Unmarshal(manifest, &m); err != nil {
		return nil, err
	}
	meta, _ := m["metadata"].(map[string]any)
	if meta == nil {
		return nil, errors.New("a manifest has no metadata")
	}
	all, _ := meta["annotations"].(map[string]any)
	if all == nil {
		all = map[string]any{}
		meta["annotations"] = all
	}
	all[key] = value
	return m, nil
}

// job makes the Job, unless one is at it that restores the same into the same claim.
func (r *Restore) job(ctx context.Context, into *claim) (name, what string, err error) {
	var own, is job
	if err := json.Unmarshal(r.Job, &own); err != nil {
		return "", "", err
	}
	name, what = own.Metadata.Name, own.Metadata.Annotations[RestoreKey]
	err = r.Client.call(ctx, http.MethodGet, r.Client.jobPath(name), nil, &is)
	if err != nil && !missing(err) {
		return name, what, err
	}
	if a := is.Metadata.Annotations; err == nil {
		if is.Metadata.Deleted == nil && !is.has("Failed") && a[RestoreKey] == what && a[claimKey] == into.Metadata.UID {
			return name, what, nil
		}
		r.Say("an earlier Job %s is removed", name)
		if err := r.removeJob(ctx, name); err != nil {
			return name, what, err
		}
	}
	m, err := annotated(r.Job, claimKey, into.Metadata.UID)
	if err == nil {
		err = r.Client.call(ctx, http.MethodPost, r.Client.jobPath(""), m, nil)
	}
	return name, what, err
}

// removeJob returns when the Job and its pods are gone: two at a time must not write into the claim.
func (r *Restore) removeJob(ctx context.Context, name string) error {
	err := r.Client.call(ctx, http.MethodDelete, r.Client.jobPath(name), map[string]any{"propagationPolicy": "Foreground"}, nil)
	for !missing(err) {
		if err != nil && !Passes(err) {
			return err
		}
		if err := r.pause(ctx); err != nil {
			return err
		}
		err = r.Client.call(ctx, http.MethodGet, r.Client.jobPath(name), nil, nil)
	}
	return nil
}

func (r *Restore) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(r.Poll):
		return nil
	}
}

// podEnds is what a Job that goes on waits for while its pod is being ended.
const podEnds = "its pod is being ended; another one begins when that is over"

// await returns what the Job said when it has done its work, and tells meanwhile what it waits for.
func (r *Restore) await(ctx context.Context, name string) (result string, err error) {
	said := ""
	for {
		var is job
		err := r.Client.call(ctx, http.MethodGet, r.Client.jobPath(name), nil, &is)
		if err != nil && !Passes(err) {
			return "", fmt.Errorf("the Job %s: %w", name, err)
		}
		waits, last := r.pods(ctx, name)
		switch {
		case err == nil && is.has("Complete"):
			if last == "" {
				last = "the pod that did it is gone; the newest transaction of the first member says up to where"
			}
			return last, nil
		case err == nil && is.has("Failed"):
			if last == "" && waits != "" && waits != podEnds {
				last = waits
			} else if last == "" {
				last = "its pod is gone, deleted or with its node, and has not said why; kubectl describe tells more"
			}
			return "", fmt.Errorf("the Job %s has failed: %s", name, last)
		case waits != said && waits != "":
			r.Say("the Job %s waits: %s", name, waits)
		}
		said = waits
		if err := r.pause(ctx); err != nil {
			return "", err
		}
	}
}

// Codes by which a container ends that a signal has stopped.
const (
	exitKilled = 128 + 9
	// ExitTerminated is that of a program which was told to end.
	ExitTerminated = 128 + 15
)

// pods tells what the Job's pod waits for, and what the last one said that ended.
func (r *Restore) pods(ctx context.Context, name string) (waits, last string) {
	var pods struct {
		Items []struct {
			Metadata metadata `json:"metadata"`
			Status   struct {
				Conditions        []condition `json:"conditions"`
				ContainerStatuses []struct {
					State struct {
						Waiting    *struct{ Reason, Message string }
						Terminated *struct {
							Message, FinishedAt string
							ExitCode            int
						}
					} `json:"state"`
				} `json:"containerStatuses"`
			} `json:"status"`
		} `json:"items"`
	}
	path := r.Client.path("api/v1", "pods", "") + "?labelSelector=" + url.QueryEscape("batch.kubernetes.io/job-name="+name)
	if err := r.Client.call(ctx, http.MethodGet, path, nil, &pods); err != nil {
		return "", err.Error()
	}
	if len(pods.Items) == 0 {
		return r.warned(ctx, name), ""
	}
	last, at := "", ""
	for _, p := range pods.Items {
		if p.Metadata.Deleted != nil {
			waits = podEnds
		}
		for _, c := range p.Status.Conditions {
			if c.Type == "PodScheduled" && c.Status == "False" {
				waits = c.Message
			}
		}
		for _, c := range p.Status.ContainerStatuses {
			if w := c.State.Waiting; w != nil {
				waits = w.Reason + " " + w.Message
			}
			if e := c.State.Terminated; e != nil && e.FinishedAt >= at {
				if last, at = strings.TrimSpace(e.Message), e.FinishedAt; e.ExitCode == exitKilled || e.ExitCode == ExitTerminated {
					last = "its pod was stopped from outside. The last that it said: " + last
				}
			}
		}
	}
	return waits, last
}

// warned is why no pod of the Job could be made, as its events tell: a quota or a webhook refuses it; empty: they tell nothing. That it has
// failed, for which there is a warning as well, is no reason.
func (r *Restore) warned(ctx context.Context, name string) string {
	var events struct {
		Items []struct{ Type, Reason, Message, LastTimestamp string } `json:"items"`
	}
	of := url.QueryEscape("involvedObject.kind=Job,involvedObject.name=" + name)
	path := r.Client.path("api/v1", "events", "") + "?fieldSelector=" + of
	if r.Client.call(ctx, http.MethodGet, path, nil, &events) != nil { // it is no more than a hint
		return ""
	}
	text, at := "", ""
	for _, e := range events.Items {
		if e.Type == Warning && e.Reason == "FailedCreate" && e.LastTimestamp >= at {
			text, at = e.Reason+": "+e.Message, e.LastTimestamp
		}
	}
	return text
}
