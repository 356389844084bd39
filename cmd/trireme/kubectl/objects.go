package kubectl

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	instanceLabel  = "app.kubernetes.io/instance"
	nameLabel      = "app.kubernetes.io/name"
	componentLabel = "app.kubernetes.io/component"
	// container is the container of the node in each pod.
	container = "trireme"
	// program is the program there, and passwordFile has root's password.
	program      = "/trireme"
	passwordFile = "/etc/trireme-root/password"
)

// meta is the part of an object that is looked at.
type meta struct {
	Name        string            `json:"name"`
	UID         string            `json:"uid"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Created     time.Time         `json:"creationTimestamp"`
	Deleted     *time.Time        `json:"deletionTimestamp"`
}

type list[T any] struct {
	Items []T `json:"items"`
}

type pod struct {
	Meta meta `json:"metadata"`
	Spec struct {
		Node       string `json:"nodeName"`
		Containers []struct {
			Name string `json:"name"`
		} `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase      string `json:"phase"`
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"conditions"`
		Containers []struct {
			Name     string `json:"name"`
			Restarts int    `json:"restartCount"`
			State    struct {
				Running *struct{} `json:"running"`
				Waiting *struct {
					Reason string `json:"reason"`
				} `json:"waiting"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

func (p *pod) ready() bool {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// running reports whether the node's process runs, ready or not.
func (p *pod) running() bool {
	for _, c := range p.Status.Containers {
		if c.Name == container {
			return c.State.Running != nil
		}
	}
	return false
}

func (p *pod) restarts() (n int) {
	for _, c := range p.Status.Containers {
		if c.Name == container {
			n = c.Restarts
		}
	}
	return n
}

// state is what kubectl shows of a pod, in a word.
func (p *pod) state() string {
	if p.Meta.Deleted != nil {
		return "Terminating"
	}
	for _, c := range p.Status.Containers {
		if c.State.Waiting != nil && c.State.Waiting.Reason != "" {
			return c.State.Waiting.Reason
		}
	}
	return p.Status.Phase
}

// get reads objects of the release's namespace.
func get[T any](p *Plugin, words ...string) ([]T, error) {
	out, err := p.output(append(append([]string{"get"}, words...), "-o", "json")...)
	if err != nil {
		return nil, err
	}
	var all list[T]
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("kubectl get %s: %w", words[0], err)
	}
	return all.Items, nil
}

// pods finds the release's pods of members and read replicas, and with it which release it is.
func (p *Plugin) pods() ([]pod, error) {
	found, err := get[pod](p, "pods", "-l", componentLabel+" in (member,replica)")
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(q pod) bool {
		i := slices.IndexFunc(q.Spec.Containers, func(c struct {
			Name string `json:"name"`
		}) bool {
			return c.Name == container
		})
		return i < 0 || p.release != "" && q.Meta.Labels[instanceLabel] != p.release || p.name != "" && q.Meta.Labels[nameLabel] != p.name
	})
	releases, names := labels(found, instanceLabel), labels(found, nameLabel)
	switch {
	case len(releases) > 1:
		return nil, fmt.Errorf("the namespace has several releases; name one by --release: %s", strings.Join(releases, ", "))
	case len(names) > 1: // an umbrella chart has this one under several aliases
		return nil, fmt.Errorf("release %s has several groups; name one by --name: %s", releases[0], strings.Join(names, ", "))
	case len(releases) == 0 && p.release == "":
		return nil, errors.New("the namespace has no pods of Trireme; name another by -n. If the group is stopped, name its release by --release")
	case len(releases) == 1:
		p.release = releases[0]
	}
	return found, nil
}

// labels are the values that a label has, each once.
func labels(pods []pod, label string) (values []string) {
	for i := range pods {
		values = append(values, pods[i].Meta.Labels[label])
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// selector finds the objects of the group.
func (p *Plugin) selector() string {
	s := instanceLabel + "=" + p.release
	if p.name != "" {
		s += "," + nameLabel + "=" + p.name
	}
	return s
}

// server is the pod that is asked: one that is ready, else one that runs, and one that is to end only if there is no other: it may wait for
// minutes, and leads or answers all the while.
func (p *Plugin) server() (*pod, error) {
	pods, err := p.pods()
	if err != nil {
		return nil, err
	}
	for _, ends := range []bool{false, true} {
		for _, good := range []func(*pod) bool{(*pod).ready, (*pod).running} {
			for i := range pods {
				if good(&pods[i]) && (pods[i].Meta.Deleted != nil) == ends {
					return &pods[i], nil
				}
			}
		}
	}
	return nil, fmt.Errorf("no pod of release %s runs: kubectl trireme status tells what they wait for", p.release)
}

// inside are the words by which kubectl runs the program in a pod.
func inside(pod string, words ...string) []string {
	return append([]string{"exec", pod, "-c", container, "--", program}, words...)
}
