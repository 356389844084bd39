package node_test

import (
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	replication "github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/server/node"
)

// kubernetes answers for StatefulSets as the API does, and takes in what is deleted and told.
type kubernetes struct {
	ends   bool // the namespace is being deleted
	mu     sync.Mutex
	set    string   // what it says of the set; empty: there is none
	read   string   // what it says of the set of read replicas
	asked  int      // how often it was
	claims []string // that are there
	looked []string // which claims it was asked for
	phase  string   // of all claims, if they have no volume yet
	bare   bool     // pods may look at claims, and at nothing else
	done   []string // what was deleted, and reasons of events, in order
	told   []string // what events say
	shut   bool     // pods have no rights any more
	denied int      // how often it said so
	busy   bool     // it says nothing of claims
	anew   string   // a claim that is another one of that name as soon as somebody has looked at it

	restores map[string]string // what claims say of a restore
	going    map[string]bool   // claims that are being deleted
}

// shutOut takes the pods' rights away, or gives them back.
func (k *kubernetes) shutOut(shut bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shut, k.denied = shut, 0
}

// setBusy lets it answer questions for claims with an error, or as it should.
func (k *kubernetes) setBusy(busy bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.busy = busy
}

// refusals is how often it was asked without a right to since shutOut.
func (k *kubernetes) refusals() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.denied
}

// claim answers for a claim that is there. Its uid is its name, or more if it is another one.
func (k *kubernetes) claim(w http.ResponseWriter, r *http.Request, name string) {
	uid := name
	switch {
	case r.Method == http.MethodGet && k.anew == name:
		k.anew += "+"
	case k.anew == name+"+":
		uid = k.anew
	}
	if r.Method == http.MethodGet {
		metadata := map[string]any{"uid": uid, "annotations": map[string]string{"trireme.io/restore": k.restores[name]}}
		if k.going[name] {
			metadata["deletionTimestamp"] = "2020-01-01T00:00:00Z"
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": metadata, "status": map[string]string{"phase": k.phase}})
		return
	}
	var options struct{ Preconditions struct{ UID string } }
	if err := json.NewDecoder(r.Body).Decode(&options); err != nil || options.Preconditions.UID != uid {
		k.done = append(k.done, "not "+name)
		http.Error(w, `{"code": 409}`, http.StatusConflict)
		return
	}
	k.claims = slices.DeleteFunc(k.claims, func(c string) bool { return c == name })
	k.done = append(k.done, name)
	_, _ = w.Write([]byte("{}"))
}

// has reports what was deleted and told.
func (k *kubernetes) has() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.done)
}

func (k *kubernetes) say(set string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set = set
}

// sayBoth says something of both sets.
func (k *kubernetes) sayBoth(set, read string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set, k.read = set, read
}

// count is how often it was asked.
func (k *kubernetes) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

func (k *kubernetes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	claim, isClaim := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/prod/persistentvolumeclaims/")
	if isClaim && r.Method == http.MethodGet {
		k.looked = append(k.looked, claim)
	}
	switch {
	case k.shut, k.bare && !(isClaim && r.Method == http.MethodGet):
		k.denied++
		http.Error(w, "you may not", http.StatusForbidden)
		return
	case isClaim && k.busy:
		http.Error(w, "later", http.StatusServiceUnavailable)
		return
	case isClaim && slices.Contains(k.claims, claim):
		k.claim(w, r, claim)
		return
	case r.Method == http.MethodPost && k.ends:
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"code": 403, "message": "events \"db.1\" is forbidden: unable to create new content in namespace prod because it is being terminated"}`))
		return
	case r.Method == http.MethodPost:
		var event struct{ Reason, Message string }
		_ = json.NewDecoder(r.Body).Decode(&event)
		k.done, k.told = append(k.done, event.Reason), append(k.told, event.Message)
		_, _ = w.Write([]byte("{}"))
		return
	}
	k.asked++
	set := map[string]string{"db": k.set, "db-read": k.read}[strings.TrimPrefix(r.URL.Path, "/apis/apps/v1/namespaces/prod/statefulsets/")]
	if set == "" {
		http.Error(w, `{"code": 404}`, http.StatusNotFound)
		return
	}
	_, _ = w.Write([]byte(set))
}

// kubernetesAPI serves all tests, since pods find it by their environment. Their tokens tell which kubernetes is meant.
type kubernetesAPI struct {
	tokens sync.Map // of *kubernetes
	server *httptest.Server
}

var theAPI kubernetesAPI

func (a *kubernetesAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if k, ok := a.tokens.Load(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); ok {
		k.(*kubernetes).ServeHTTP(w, r)
		return
	}
	http.Error(w, "who are you?", http.StatusUnauthorized)
}

// start serves, and lets the process be a pod's.
func (a *kubernetesAPI) start() {
	a.server = httptest.NewTLSServer(a)
	h, port, err := net.SplitHostPort(a.server.Listener.Addr().String())
	if err := errors.Join(err, os.Setenv("KUBERNETES_SERVICE_HOST", h), os.Setenv("KUBERNETES_SERVICE_PORT", port)); err != nil {
		panic(err)
	}
}

// newKubernetes returns one that holds for a test, and the settings of its pods.
func newKubernetes(t *testing.T) (k *kubernetes, settings []string) {
	k = &kubernetes{}
	token := rand.Text()
	theAPI.tokens.Store(token, k)
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: theAPI.server.Certificate().Raw})
	for name, text := range map[string]string{"token": token + "\n", "namespace": "prod", "ca.crt": string(ca)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return k, []string{"--kubernetes-statefulset=db", "--kubernetes-credentials=" + dir}
}

// TestLeave: a member that is stopped leaves the group when its StatefulSet has become too
// small for it, and only then.
func TestLeave(t *testing.T) {
	k, settings := newKubernetes(t)
	members := pods(t, 3, settings...)
	report := func(i int) node.Report { return members[i].report(t) }
	consists := func(i, of int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d members", of), func() error {
			r := report(i)
			online := 0
			for _, m := range r.Members {
				if m.State == "ONLINE" {
					online++
				}
			}
			if len(r.Members) != of || online != of || r.Status.Leader == 0 {
				return fmt.Errorf("%+v", r.Members)
			}
			return nil
		})
	}
	consists(0, 3)
	// Nobody leaves because the set goes, is paused, is as it was, or says nothing sensible.
	for _, set := range []string{"", `{"spec": {"replicas": 0}}`, `{"spec": {"replicas": 3}}`, `{"spec": {"replicas": 1, "ordinals": {"start": 2}}}`,
		`{"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}, "spec": {"replicas": 1}}`, `{"spec": {}}`, `[]`} {
		k.say(set)
		asked := k.count()
		members[2].stop()
		if k.count() == asked {
			t.Fatal("Kubernetes was not asked")
		}
		var err error
		if members[2], err = start(t, members[2].args); err != nil {
			t.Fatal(err)
		}
		consists(0, 3)
	}
	// The leader too: it hands over to one that stays.
	k.say(`{"spec": {"replicas": 2}}`)
	eventually(t, "member 2 leads", func() error {
		if members[2].Leads() {
			return nil
		}
		for _, m := range members[:2] {
			if m.Leads() {
				_, _ = adminOf(t, m).Transfer(signedIn("root", "secret"), &triremev1.AdminTransferRequest{To: report(2).Member})
			}
		}
		return fmt.Errorf("another leads")
	})
	members[2].stop()
	consists(0, 2)
	left, err := start(t, members[2].args)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a member that has left is told so", func() error {
		if err := left.Err(); !errors.Is(err, replication.ErrRemoved) {
			return fmt.Errorf("it stands: %v", err)
		}
		return nil
	})
}

// transfer has a member that leads hand over to one of others.
func (m *member) transfer(t *testing.T, others []*member) {
	t.Helper()
	eventually(t, "another leads", func() error {
		if !m.Leads() {
			return nil
		}
		_, err := adminOf(t, m).Transfer(signedIn("root", "secret"), &triremev1.AdminTransferRequest{To: others[0].report(t).Member})
		return errors.Join(err, errors.New("it still leads"))
	})
}
