package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
)

// statefulSet is what a node in a pod of Kubernetes knows of the set that it belongs to. When a
// set is made smaller nobody tells its pods why they are stopped: whoever is stopped asks, and
// leaves the group if there will be no place for him. Only the token of the pod is needed for
// that, and the right to look at this one set.
type statefulSet struct {
	url     string // of the set
	files   string // directory of the pod's token and of the authority
	name    string
	ordinal int // the pod's
}

const (
	// askSet is how long the set may take to answer: a stop waits for it.
	askSet = 3 * time.Second
	// leaveTime is how long a node tries to leave; trireme server gives it 10 s.
	leaveTime  = 8 * time.Second
	leaveRetry = 100 * time.Millisecond
	// setMax bounds what is read of an answer.
	setMax = 4 << 20
)

// newStatefulSet returns the set of this pod; nil, if it is of none.
func (n *Node) newStatefulSet() (*statefulSet, error) {
	name := n.cfg.String("kubernetes_statefulset")
	if name == "" {
		return nil, nil
	}
	s := &statefulSet{name: name, files: n.cfg.String("kubernetes_credentials")}
	pod, _, _ := strings.Cut(host(n.cfg), ".")
	var ok bool
	if s.ordinal, ok = s.place(pod); !ok {
		return nil, fmt.Errorf("kubernetes_statefulset: report_host begins with %q, which is no pod of %s", pod, name)
	}
	namespace, err := os.ReadFile(filepath.Join(s.files, "namespace"))
	if err != nil {
		return nil, fmt.Errorf("kubernetes_credentials: %w", err)
	}
	address := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	if address == ":" {
		return nil, errors.New("kubernetes_statefulset is set, and this is no pod of Kubernetes: KUBERNETES_SERVICE_HOST is missing")
	}
	s.url = fmt.Sprintf("https://%s/apis/apps/v1/namespaces/%s/statefulsets/%s", address, strings.TrimSpace(string(namespace)), name)
	return s, nil
}

// place is a pod's number in the set.
func (s *statefulSet) place(pod string) (ordinal int, ok bool) {
	number, ok := strings.CutPrefix(pod, s.name+"-")
	ordinal, err := strconv.Atoi(number)
	return ordinal, ok && err == nil && ordinal >= 0
}

// size asks how many pods the set has from now on: those with numbers below end. A set that
// ends, or is to have no pods for a while, says nothing of members, and neither does one that
// is gone.
func (s *statefulSet) size(ctx context.Context) (end int, known bool, err error) {
	token, err := os.ReadFile(filepath.Join(s.files, "token"))
	if err != nil {
		return 0, false, err
	}
	ca, err := os.ReadFile(filepath.Join(s.files, "ca.crt"))
	if err != nil {
		return 0, false, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer t.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, askSet)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return 0, false, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return 0, false, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return 0, false, nil
	default:
		return 0, false, fmt.Errorf("it is answered %s", resp.Status)
	}
	var set struct {
		Metadata struct {
			DeletionTimestamp *string `json:"deletionTimestamp"`
		} `json:"metadata"`
		Spec struct {
			Replicas *int `json:"replicas"`
			Ordinals struct {
				Start int `json:"start"`
			} `json:"ordinals"`
		} `json:"spec"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, setMax)).Decode(&set); err != nil {
		return 0, false, fmt.Errorf("what Kubernetes answers: %w", err)
	}
	if set.Spec.Replicas == nil || *set.Spec.Replicas <= 0 || set.Metadata.DeletionTimestamp != nil {
		return 0, false, nil
	}
	return set.Spec.Ordinals.Start + *set.Spec.Replicas, true, nil
}

// leaver is a node that is stopped for good.
type leaver struct {
	n   *Node
	end int // pods below it stay
}

// leaving says whether this node has to leave the group, and how; nil: it stays a member.
func (n *Node) leaving(ctx context.Context) *leaver {
	if n.set == nil || n.group == nil || n.group.Err() != nil {
		return nil
	}
	end, known, err := n.set.size(ctx)
	if err != nil {
		n.log.Warn("whether this member is wanted any more is not known: it stays one", "error", err)
	}
	if err != nil || !known || n.set.ordinal < end {
		return nil
	}
	n.log.Info("the StatefulSet has no place for this member any more: it leaves the group", "set", n.set.name, "pods", end)
	return &leaver{n, end}
}

// successor is a voter that stays; 0: any.
func (l *leaver) successor() uint64 {
	if l == nil {
		return 0
	}
	for _, m := range l.n.group.Members() {
		pod, _, _ := strings.Cut(m.Addr, ".")
		if ordinal, ok := l.n.set.place(pod); ok && ordinal < l.end && !m.Learner && m.ID != l.n.group.ID() {
			return m.ID
		}
	}
	return 0
}

// leave has the leader take this member out of the group.
func (l *leaver) leave() {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	for {
		err := l.try(ctx)
		if l.left() {
			l.n.log.Info("this member has left the group")
			return
		}
		select {
		case <-ctx.Done():
			l.n.log.Warn("this member could not leave the group: remove it there", "member", l.n.group.ID(), "error", err)
			return
		case <-time.After(leaveRetry):
		}
	}
}

func (l *leaver) left() bool {
	if errors.Is(l.n.group.Err(), group.ErrRemoved) {
		return true
	}
	all := l.n.group.Members()
	for _, m := range all {
		if m.ID == l.n.group.ID() {
			return false
		}
	}
	return len(all) > 0
}

func (l *leaver) try(ctx context.Context) error {
	leader, ok := l.n.group.Leader()
	switch {
	case !ok:
		return errors.New("nobody leads the group")
	case leader.ID == l.n.group.ID():
		return l.n.group.Transfer(l.successor())
	}
	// The answer may not come: whoever has left is not talked to.
	_, err := l.n.peers.Ask(ctx, transport.Call{To: leader.ID, Kind: askLeave, Timeout: time.Second})
	return err
}

// letGo takes a member out of the group that has asked for it.
func (n *Node) letGo(ctx context.Context) ([]byte, error) {
	caller := transport.CallerFrom(ctx)
	if !n.isReady() || caller.Member == 0 || caller.Group != transport.GroupID(n.group.Group()) {
		return nil, &transport.Failure{Text: "only members leave the group"}
	}
	if err := n.admin.Leave(ctx, caller.Member); err != nil {
		return nil, &transport.Failure{Text: err.Error()}
	}
	return nil, nil
}
