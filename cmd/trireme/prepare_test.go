package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// held is what a Kubernetes holds of a release.
type held struct {
	mu      sync.Mutex
	sets    map[string]string // as JSON, by name
	claims  map[string]string // their sizes
	owner   map[string]string // of claims, if they have one
	fixed   []string          // claims that do not grow
	quota   int               // how many claims may grow; 0: all, though each alone would
	going   int               // how often a set that was deleted is still there
	refuses int               // how often rights are not in force yet
	busy    map[string]bool   // calls that were answered by an error that passes, as each is at first; nil: none is
	lost    bool              // the answer to the next deletion is lost
	falls   int               // so many calls after a deletion are answered by an error that passes
	did     []string
	has     map[string]string // an annotation argocd.argoproj.io/sync-options that claims have
	notes   map[string]map[string]string
	tried   []string // the templates of pods that were tried, as JSON
}

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var body struct {
		Spec struct {
			Resources struct{ Requests struct{ Storage string } }
		}
		Metadata struct {
			UID         string
			Annotations map[string]string
		}
		PropagationPolicy string
		Preconditions     struct{ UID string }
	}
	sent, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(sent, &body)
	say := func(code int, text string) {
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"message": %q}`, text)
	}
	if h.refuses > 0 {
		h.refuses--
		say(http.StatusForbidden, "you may not")
		return
	}
	if call := r.Method + r.URL.String(); h.busy != nil && !h.busy[call] {
		h.busy[call] = true
		say(http.StatusServiceUnavailable, "not now")
		return
	}
	name := filepath.Base(r.URL.Path)
	if claim := strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/prod/persistentvolumeclaims/"); claim {
		size, ok := h.claims[name]
		switch {
		case !ok:
			say(http.StatusNotFound, "no such claim")
		case r.Method == http.MethodGet:
			notes := "{}"
			if value := h.has[name]; value != "" {
				notes = fmt.Sprintf(`{"argocd.argoproj.io/sync-options": %q}`, value)
			}
			_, _ = fmt.Fprintf(w, `{"metadata": {"uid": "of-%s", "annotations": %s, "ownerReferences": [{"uid": %q}]}, "spec": {"resources": {"requests": {"storage": %q}}}}`,
				name, notes, h.owner[name], size)
		case r.Method != http.MethodPatch || r.Header.Get("Content-Type") != "application/merge-patch+json":
			say(http.StatusMethodNotAllowed, "no")
		case body.Metadata.Annotations != nil && body.Metadata.UID == "of-"+name:
			if h.notes == nil {
				h.notes = map[string]map[string]string{}
			}
			if strings.Contains(strings.Join(h.did, ""), "deleted") {
				h.did = append(h.did, name+" is annotated too late")
			}
			h.notes[name] = body.Metadata.Annotations
		case slices.Contains(h.fixed, name):
			say(http.StatusForbidden, "the storageclass that provisions the pvc must support resize")
		case r.URL.Query().Get("dryRun") == "All":
		case h.quota > 0 && len(h.did) >= h.quota:
			say(http.StatusForbidden, "exceeded quota")
		default:
			h.claims[name] = body.Spec.Resources.Requests.Storage
			h.did = append(h.did, name+" "+h.claims[name])
		}
		return
	}
	set, ok := h.sets[name]
	if strings.Contains(set, "deletionTimestamp") && h.falls > 0 {
		h.falls--
		say(http.StatusTooManyRequests, "too many")
		return
	}
	switch {
	case !ok:
		say(http.StatusNotFound, "no such set")
	case r.Method == http.MethodGet:
		if strings.Contains(set, "deletionTimestamp") {
			if h.going--; h.going < 0 {
				delete(h.sets, name)
			}
		}
		_, _ = w.Write([]byte(set))
	case r.Method == http.MethodPut && r.URL.Query().Get("dryRun") == "All":
		var set struct {
			Spec struct{ Template json.RawMessage }
		}
		_ = json.Unmarshal(sent, &set)
		h.tried = append(h.tried, name+" "+string(set.Spec.Template))
		if strings.Contains(string(set.Spec.Template), "9Gi") {
			say(http.StatusUnprocessableEntity, "requests: Invalid value: must be less than or equal to memory limit")
		} else if strings.Contains(string(set.Spec.Template), "webhook") {
			say(http.StatusBadRequest, "admission webhook does not support dry run")
		} else if strings.Contains(string(set.Spec.Template), "policy") {
			say(http.StatusForbidden, `admission webhook "validation.gatekeeper.sh" denied the request: no`)
		}
	case r.Method == http.MethodDelete && body.PropagationPolicy == "Orphan" && body.Preconditions.UID == "of-"+name:
		if strings.Contains(set, "deletionTimestamp") {
			return
		}
		h.sets[name] = strings.Replace(set, `"uid"`, `"deletionTimestamp": "2020-01-01T00:00:00Z", "uid"`, 1)
		h.did = append(h.did, name+" is deleted")
		if h.lost {
			h.lost = false
			panic(http.ErrAbortHandler)
		}
	default:
		say(http.StatusMethodNotAllowed, "no")
	}
}

// heldSet is a set of three pods; managers are further fields of its metadata.
func heldSet(name, size string, replicas int, managers string) string {
	return fmt.Sprintf(`{"metadata": {"uid": "of-%s"%s}, "spec": {"replicas": %d, "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": %q}}}}]}}`,
		name, managers, replicas, size)
}

const (
	byHelm       = `, "annotations": {"meta.helm.sh/release-name": "db"}, "managedFields": [{"manager": "helm", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]`
	byKubectl    = `, "annotations": {"meta.helm.sh/release-name": "db"}, "managedFields": [{"manager": "helm", "operation": "Apply", "fieldsV1": {"f:spec": {"f:template": {}}}}, {"manager": "kubectl", "operation": "Update", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]`
	byAutoscaler = `, "annotations": {"meta.helm.sh/release-name": "db"}, "managedFields": [{"manager": "kube-controller-manager", "operation": "Update", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]`
	byEdit       = `, "annotations": {"meta.helm.sh/release-name": "db"}, "managedFields": [{"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]`
)

// TestPrepare: what is expanded and set aside before Helm goes on, and what is refused before anything is changed.
func TestPrepare(t *testing.T) {
	three := func(size string) map[string]string {
		return map[string]string{"data-db-0": size, "data-db-1": size, "data-db-2": size}
	}
	grown := []string{"data-db-0 40Gi", "data-db-1 40Gi", "data-db-2 40Gi", "db is deleted"}
	owned := map[string]string{"data-db-1": "of-db"}
	for _, c := range []struct {
		name  string
		held  *held
		args  string
		did   []string
		code  int
		tells string
	}{
		{"as it was", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, "--size=20480Mi db=3", nil, 0, "all is prepared"},
		{"claims as they were", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, "--size=20Gi --access-modes=ReadWriteOnce --claim-annotations={} db=3", nil, 0, "all is prepared"},
		{"other access modes", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, "--size=20Gi --access-modes=ReadWriteOncePod db=3", []string{"db is deleted"}, 0, ""},
		{"annotations", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, `--size=20Gi --claim-annotations={"a":"b"} db=3`, []string{"db is deleted"}, 0, ""},
		{"annotations, and claims go with their set", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi"), owner: owned}, `--size=20Gi --claim-annotations={"a":"b"} db=3`, nil, 1,
			"data-db-1 belongs to the StatefulSet db"},
		{"no annotations", &held{}, "--size=1Gi --claim-annotations=[1] db=3", nil, 2, "claim-annotations"},
		{"a quota has room for two", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi"), quota: 2}, "--size=40Gi db=3", grown[:2], 1,
			"data-db-2 does not grow from 20Gi to 40Gi: Kubernetes answers 403: exceeded quota\ndata-db-0, data-db-1 asked for it already, which stays so, and nothing else was changed"},
		{"more pods", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, "--size=20Gi db=5", nil, 0, ""},
		{"it grows", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi"), going: 2}, "--size=40Gi db=3", grown, 0, "data-db-2 grows from 20Gi to 40Gi"},
		{"rights are not in force yet", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi"), refuses: 3}, "--size=40Gi db=3", grown, 0, ""},
		{"Kubernetes is busy", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi"), busy: map[string]bool{}, going: 2}, "--claims=3 --size=40Gi db=3", grown, 0,
			"all is prepared"},
		{"an answer is lost", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi"), lost: true}, "--size=40Gi db=3", grown, 0, "all is prepared"},
		{"Kubernetes is busy while a set goes", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi"), falls: 3, going: 1}, "--size=40Gi db=3", grown, 0,
			"all is prepared"},
		{"replicas as well", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 1, byHelm), "db-read": heldSet("db-read", "20Gi", 1, byHelm)},
			claims: map[string]string{"data-db-0": "20Gi", "data-db-read-0": "20Gi", "data-db-9": "20Gi"}}, "--size=40Gi db=1 db-read=2",
			[]string{"data-db-0 40Gi", "data-db-9 40Gi", "data-db-read-0 40Gi", "db is deleted", "db-read is deleted"}, 0, ""},
		{"it was interrupted while claims grew", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: map[string]string{"data-db-0": "40Gi", "data-db-1": "20Gi"}},
			"--size=40Gi db=3", []string{"data-db-1 40Gi", "db is deleted"}, 0, ""},
		{"Helm was interrupted", &held{claims: three("40Gi")}, "--size=40Gi db=3", nil, 0, ""},
		{"there is nothing yet", &held{}, "--size=40Gi db=3", nil, 0, ""},
		{"one is larger", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: map[string]string{"data-db-0": "50Gi"}}, "--size=40Gi db=3",
			[]string{"db is deleted"}, 0, "data-db-0 stays as it is: it has 50Gi already"},
		{"smaller", &held{sets: map[string]string{"db": heldSet("db", "40Gi", 3, byHelm)}, claims: three("40Gi")}, "--size=20Gi --otherwise=Else. db=3", nil, 1,
			"db has volumes of 40Gi, which do not become smaller: 20Gi is less\n  Keep persistence.size=40Gi"},
		{"smaller, as is wanted", &held{sets: map[string]string{"db": heldSet("db", "40Gi", 3, byHelm)}, claims: three("40Gi")}, "--size=20Gi --keep-claims db=3", []string{"db is deleted"}, 0, ""},
		{"larger, but not those that are there", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi"), fixed: []string{"data-db-2"}},
			"--size=40Gi --keep-claims db=3", []string{"db is deleted"}, 0, ""},
		{"another storage class", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, "--size=40Gi --storage-class=fast db=3", nil, 1,
			`db has volumes of the storage class "", which do not come to be of "fast"`},
		{"another storage class for new ones", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, "--size=20Gi --storage-class=fast --keep-claims db=3",
			[]string{"db is deleted"}, 0, ""},
		{"back to another storage class", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, "--size=20Gi --storage-class=fast --rollback db=3",
			[]string{"db is deleted"}, 0, ""},
		{"back to less", &held{sets: map[string]string{"db": heldSet("db", "40Gi", 3, byHelm)}, claims: three("40Gi")}, "--size=20Gi --rollback db=3", []string{"db is deleted"}, 0, ""},
		{"one cannot grow", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi"), fixed: []string{"data-db-2"}}, "--size=40Gi db=3", nil, 1,
			"data-db-2 does not grow from 20Gi to 40Gi: Kubernetes answers 403: the storageclass"},
		{"back to more, and one cannot grow", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi"), fixed: []string{"data-db-2"}},
			"--size=40Gi --rollback db=3", []string{"data-db-0 40Gi", "data-db-1 40Gi", "db is deleted"}, 0, "data-db-2 stays as it is"},
		{"scaled by kubectl", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 0, byKubectl)}, claims: three("20Gi")}, "--size=20Gi db=3", []string{"db is deleted"}, 0, ""},
		{"scaled by an autoscaler", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 7, byAutoscaler)}, claims: three("20Gi")}, "--size=20Gi db=3", []string{"db is deleted"}, 0, ""},
		{"edited by kubectl", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 5, byEdit)}, claims: three("20Gi")}, "--size=20Gi db=3", []string{"db is deleted"}, 0, ""},
		{"scaled by kubectl to what is wanted", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byKubectl)}, claims: three("20Gi")}, "--size=20Gi db=3", nil, 0, ""},
		{"scaled, and a claim is smaller", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 0, byKubectl)}, claims: three("10Gi"), fixed: []string{"data-db-0"}}, "--size=20Gi db=3",
			[]string{"db is deleted"}, 0, ""},
		{"claims go with their set", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi"), owner: owned}, "--size=40Gi db=3", nil, 1,
			"First helm upgrade --set persistence.whenDeleted=Retain"},
		{"claims go with their set, which was scaled", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 1, byKubectl)}, claims: three("20Gi"), owner: owned},
			"--size=20Gi --rollback db=3", nil, 1, "First kubectl scale statefulset db --replicas=3"},
		{"back, and no Helm has made it", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, "")}, claims: three("20Gi")}, "--size=40Gi --rollback db=3", nil, 0,
			"db is no set that Helm has made"},
		{"a set that does not go", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, going: 1 << 30}, "--wait=3s --size=40Gi db=3", []string{"db is deleted"}, 1,
			"db cannot be set aside: it is being deleted"},
		{"Kubernetes would take the set", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, `--size=40Gi --template=db={"metadata":{"labels":{"a":"b"}}} db=3`, grown, 0, "all is prepared"},
		{"Kubernetes would not take the set", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, `--size=40Gi --template=db={"spec":"9Gi"} db=3`, nil, 1,
			"Kubernetes would not take db as it is to be: Kubernetes answers 422: requests: Invalid value"},
		{"nor the one that is gone back to", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, `--size=40Gi --rollback --template=db={"spec":"9Gi"} db=3`, nil, 1, "would not take db"},
		{"nor one that is new", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, `--size=40Gi --template=db={} --template=db-read={"spec":"9Gi"} db=3 db-read=1`, nil, 1, "would not take db-read"},
		{"a policy would not", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, `--size=40Gi --template=db={"spec":"policy"} db=3`, nil, 1, "denied the request"},
		{"it cannot be tried", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, `--size=40Gi --template=db={"spec":"webhook"} db=3`, grown, 0, "cannot be tried: Kubernetes answers 400"},
		{"no set is made anew", &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: three("20Gi")}, `--size=20Gi --template=db={"spec":"9Gi"} db=3`, nil, 0, "all is prepared"},
		{"no template", &held{}, "--size=1Gi --template=db db=3", nil, 2, "it is not SET=JSON"},
		{"no rights", &held{refuses: 1 << 30}, "--wait=3s --size=40Gi db=3", nil, 1, "you may not"},
		{"no size", &held{}, "--size=lots db=3", nil, 2, "--size: "},
		{"no pods", &held{}, "--size=1Gi db", nil, 2, "is not SET=PODS"},
		{"no sets", &held{}, "--size=1Gi", nil, 2, "give sets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out := quiet(t, append([]string{"prepare", "--credentials=" + c.held.serve(t)}, strings.Fields(c.args)...)...)
			if code != c.code || !strings.Contains(out, c.tells) || strings.Contains(c.args, "Else.") && !strings.Contains(out, "\nElse.\n") {
				t.Errorf("%d\n%s", code, out)
			}
			if !slices.Equal(c.held.did, c.did) {
				t.Errorf("it did %q, not %q", c.held.did, c.did)
			}
			if code == 0 && len(c.held.sets) > 0 && len(c.did) > 0 {
				t.Errorf("it did not wait until sets are gone: %v", c.held.sets)
			}
		})
	}
}

// TestPrepareKeepsClaims: claims whose set is set aside have annotations before that keep Argo CD from deleting them, and those of the values.
func TestPrepareKeepsClaims(t *testing.T) {
	const keep = "Prune=false,Delete=false"
	for _, c := range []struct {
		args string
		has  string
		want map[string]string
	}{
		{"--size=40Gi db=3", "", map[string]string{"argocd.argoproj.io/sync-options": keep}},
		{"--size=40Gi db=3", "Prune=false", nil},
		{`--size=20Gi --claim-annotations={"a":"b"} db=3`, "", map[string]string{"argocd.argoproj.io/sync-options": keep, "a": "b"}},
		{`--size=20Gi --claim-annotations={"a":"b"} db=3`, keep, map[string]string{"a": "b"}},
		{`--size=20Gi --keep-claims --claim-annotations={"a":"b"} db=3`, "", map[string]string{"argocd.argoproj.io/sync-options": keep}},
		{"--size=20Gi db=3", "", nil}, // the set stays
	} {
		h := &held{sets: map[string]string{"db": heldSet("db", "20Gi", 3, byHelm)}, claims: map[string]string{"data-db-0": "20Gi"}, has: map[string]string{"data-db-0": c.has}}
		if code, out := quiet(t, append([]string{"prepare", "--credentials=" + h.serve(t)}, strings.Fields(c.args)...)...); code != 0 || strings.Contains(strings.Join(h.did, ""), "late") {
			t.Errorf("%s: %d %q\n%s", c.args, code, h.did, out)
		}
		if !maps.Equal(h.notes["data-db-0"], c.want) {
			t.Errorf("%s with %q: %v", c.args, c.has, h.notes)
		}
	}
}

// serve answers as Kubernetes, and returns the directory by which a pod finds it.
func (h *held) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, text := range map[string]string{"token": "it is me", "namespace": "prod", "ca.crt": string(ca)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	return dir
}
