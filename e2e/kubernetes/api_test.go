//go:build kubernetes

package kubernetes

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// api calls Kubernetes as its administrator. It knows of objects what the tests look at.
type api struct{ http *http.Client }

func newAPI(k *keys) (*api, error) {
	own, err := tls.LoadX509KeyPair(k.file("admin.crt"), k.file("admin.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(k.file("ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	t := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: pool, MinVersion: tls.VersionTLS12}}
	return &api{&http.Client{Transport: t, Timeout: 30 * time.Second}}, nil
}

// refusal is an answer that is no success.
type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (r *refusal) Error() string { return fmt.Sprintf("Kubernetes answers %d: %s", r.Code, r.Message) }

// call makes a call; what is sent and what is answered may be nil.
func (a *api) call(method, path string, send, answer any) error {
	b, err := json.Marshal(send)
	if err != nil {
		return err
	}
	if send == nil {
		b = nil
	}
	req, err := http.NewRequest(method, apiServer+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if b, err = io.ReadAll(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		r := &refusal{Message: string(b)}
		_ = json.Unmarshal(b, r) // its own words, if it has some
		r.Code = resp.StatusCode
		return r
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(b, answer)
}

func (a *api) get(path string, answer any) error { return a.call(http.MethodGet, path, nil, answer) }

// create makes an object; one that is there already is left.
func (a *api) create(path string, o any) error {
	err := a.call(http.MethodPost, path, o, nil)
	if r, ok := err.(*refusal); ok && r.Code == http.StatusConflict {
		return nil
	}
	return err
}

// remove deletes an object, which may be gone already.
func (a *api) remove(path string) error {
	err := a.call(http.MethodDelete, path, nil, nil)
	if r, ok := err.(*refusal); ok && r.Code == http.StatusNotFound {
		return nil
	}
	return err
}

type list[T any] struct {
	Items []T `json:"items"`
}

type meta struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	UID         string            `json:"uid"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Deleted     *time.Time        `json:"deletionTimestamp"`
	Owners      []struct {
		UID string `json:"uid"`
	} `json:"ownerReferences"`
}

type condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

func holds(conditions []condition, kind string) bool {
	for _, c := range conditions {
		if c.Type == kind {
			return c.Status == "True"
		}
	}
	return false
}

type pod struct {
	Meta meta `json:"metadata"`
	Spec struct {
		Node       string `json:"nodeName"`
		Containers []struct {
			Image string `json:"image"`
		} `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase      string      `json:"phase"`
		IP         string      `json:"podIP"`
		Conditions []condition `json:"conditions"`
		Containers []struct {
			Restarts int `json:"restartCount"`
			Last     struct {
				Terminated struct {
					Reason string `json:"reason"`
				} `json:"terminated"`
			} `json:"lastState"`
			State struct {
				Running *struct {
					Since time.Time `json:"startedAt"`
				} `json:"running"`
				Waiting struct {
					Reason string `json:"reason"`
				} `json:"waiting"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

func (p *pod) ready() bool { return p.Meta.Deleted == nil && holds(p.Status.Conditions, "Ready") }

// runs reports whether the pod's containers run.
func (p *pod) runs() bool {
	for _, c := range p.Status.Containers {
		if c.State.Running == nil {
			return false
		}
	}
	return p.Meta.Deleted == nil && len(p.Status.Containers) > 0
}

type kubeNode struct {
	Meta   meta `json:"metadata"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type claim struct {
	Meta meta `json:"metadata"`
	Spec struct {
		Class     *string         `json:"storageClassName"`
		Volume    string          `json:"volumeName"`
		Modes     json.RawMessage `json:"accessModes"`
		Resources struct {
			Requests storage `json:"requests"`
		} `json:"resources"`
	} `json:"spec"`
	Status struct {
		Phase    string  `json:"phase"`
		Capacity storage `json:"capacity"`
	} `json:"status"`
}

// storage is what a claim asks for, and what it has.
type storage struct {
	Size string `json:"storage"`
}

type volume struct {
	Meta meta `json:"metadata"`
	Spec struct {
		Local struct {
			Path string `json:"path"`
		} `json:"local"`
		Claim struct {
			Name string `json:"name"`
		} `json:"claimRef"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}
