package kubernetes

import (
	"context"
	"encoding/json"
	"encoding/pem"
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
	"time"
)

// api is an API of Kubernetes with objects by their paths.
type api struct {
	mu      sync.Mutex
	objects map[string]map[string]any
	made    []string // "POST path", "PATCH path", "DELETE path"
	uids    int
	// looked is called before a Job is told of, so that it goes on.
	looked func(job map[string]any)
	into   any // the claim of the last Job that was made
	fails  int // so many calls are answered by an error that passes

	breaks  []int          // how the next calls are answered: 0: as they should be, -1: not at all
	loses   map[string]int // how often a call is answered by an error though it was done
	refuses map[string]int // by what calls are answered
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer := func(code int, o any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(o)
	}
	if r.Header.Get("Authorization") != "Bearer tok" {
		answer(http.StatusUnauthorized, map[string]string{"message": "who are you"})
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/prod/")
	path = strings.TrimPrefix(path, "/apis/batch/v1/namespaces/prod/")
	path = strings.TrimPrefix(path, "/apis/apps/v1/namespaces/prod/")
	o := a.objects[path]
	var sent map[string]any
	_ = json.NewDecoder(r.Body).Decode(&sent)
	if r.Method != http.MethodGet {
		a.made = append(a.made, r.Method+" "+path)
	}
	if len(a.breaks) > 0 {
		code := a.breaks[0]
		a.breaks = a.breaks[1:]
		if code < 0 {
			panic(http.ErrAbortHandler)
		}
		if code > 0 {
			a.made = slices.DeleteFunc(a.made, func(s string) bool { return s == r.Method+" "+path })
			answer(code, map[string]string{"message": "not now"})
			return
		}
	}
	if code := a.refuses[r.Method+" "+path]; code > 0 {
		answer(code, map[string]string{"message": fmt.Sprint("because of ", code)})
		return
	}
	if a.loses[r.Method+" "+path] > 0 {
		a.loses[r.Method+" "+path]--
		done := answer
		answer = func(_ int, _ any) { done(http.StatusGatewayTimeout, map[string]string{"message": "lost"}) }
	}
	switch {
	case r.Method == http.MethodGet && a.fails > 0 && strings.HasPrefix(path, "jobs/") && o != nil:
		a.fails--
		answer(http.StatusServiceUnavailable, map[string]string{"message": "not now"})
	case r.Method == http.MethodPost:
		meta := sent["metadata"].(map[string]any)
		a.uids++
		meta["uid"] = fmt.Sprint("uid", a.uids)
		a.objects[path+"/"+meta["name"].(string)] = sent
		if path == "jobs" {
			a.into = annotations(sent)[claimKey]
		}
		answer(http.StatusCreated, sent)
	case path == "events":
		if r.URL.Query().Get("fieldSelector") != "involvedObject.kind=Job,involvedObject.name=db-restore-data" {
			answer(http.StatusBadRequest, map[string]string{"message": "of what"})
			return
		}
		answer(http.StatusOK, a.objects["events"])
	case path == "pods":
		answer(http.StatusOK, a.objects["pods"])
	case o == nil:
		answer(http.StatusNotFound, map[string]string{"message": path + " not found"})
	case r.Method == http.MethodDelete:
		delete(a.objects, path)
		answer(http.StatusOK, map[string]string{})
	case r.Method == http.MethodPatch:
		if r.Header.Get("Content-Type") != "application/merge-patch+json" {
			answer(http.StatusUnsupportedMediaType, map[string]string{})
			return
		}
		for k, v := range sent["metadata"].(map[string]any)["annotations"].(map[string]any) {
			annotations(o)[k] = v
		}
		answer(http.StatusOK, o)
	default:
		if strings.HasPrefix(path, "jobs/") && a.looked != nil {
			a.looked(o)
		}
		answer(http.StatusOK, o)
	}
}

func annotations(o map[string]any) map[string]any {
	return o["metadata"].(map[string]any)["annotations"].(map[string]any)
}

func ends(how string) func(map[string]any) {
	return func(job map[string]any) {
		job["status"] = map[string]any{"conditions": []any{map[string]any{"type": how, "status": "True"}}}
	}
}

// ended is a pod that waited for a node and ended with some words.
func ended(words string) map[string]any {
	return map[string]any{"items": []any{map[string]any{"status": map[string]any{
		"conditions":        []any{map[string]any{"type": "PodScheduled", "status": "False", "message": "no node has room"}},
		"containerStatuses": []any{map[string]any{"state": map[string]any{"terminated": map[string]any{"message": words, "finishedAt": "2026-01-01"}}}}}}}}
}

// object is one with annotations.
func object(name, uid string, all map[string]any) map[string]any {
	if all == nil {
		all = map[string]any{}
	}
	return map[string]any{"metadata": map[string]any{"name": name, "uid": uid, "annotations": all}}
}

// clientOf is a client that is to find an API at an address.
func clientOf(t *testing.T, s *httptest.Server, address string) *Client {
	t.Helper()
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, text := range map[string]string{"token": "tok\n", "namespace": "prod", "ca.crt": string(ca)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	c, err := NewClient(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newRestore makes a restore of the set db in that API.
func newRestore(t *testing.T, a *api) (r *Restore, said func() string) {
	t.Helper()
	s := httptest.NewTLSServer(a)
	t.Cleanup(s.Close)
	c := clientOf(t, s, s.Listener.Addr().String())
	var words []string
	return &Restore{Client: c, Sets: []string{"db", "db-read"}, Poll: time.Millisecond,
		Claim: json.RawMessage(`{"metadata": {"name": "data-db-0", "labels": {"a": "b"}}, "spec": {"x": "y"}}`),
		Job:   json.RawMessage(`{"metadata": {"name": "db-restore-data", "annotations": {"trireme.io/restore": "monday"}}}`),
		Say:   func(format string, a ...any) { words = append(words, fmt.Sprintf(format, a...)) }}, func() string { return strings.Join(words, "\n") }
}

const (
	ownClaim = "persistentvolumeclaims/data-db-0"
	ownJob   = "jobs/db-restore-data"
)

// Where nothing is, a claim is made and restored into; what had that done before is told from it.
func TestRestoreMakesOnce(t *testing.T) {
	a := &api{objects: map[string]map[string]any{"pods": ended("restored to transaction 7")}, looked: ends("Complete"), fails: 1}
	r, said := newRestore(t, a)
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := []string{"POST persistentvolumeclaims", "POST jobs", "PATCH " + ownClaim, "DELETE " + ownJob}
	if !slices.Equal(a.made, want) {
		t.Errorf("%q", a.made)
	}
	c := a.objects[ownClaim]
	if annotations(c)[RestoreKey] != "done: monday: restored to transaction 7" || c["spec"].(map[string]any)["x"] != "y" || a.into != "uid1" {
		t.Errorf("%v, by a job for %v", c, a.into)
	}
	for range 2 {
		if err := r.Run(context.Background()); err != nil || !slices.Equal(a.made, want) {
			t.Fatalf("once more: %v, %q", err, a.made)
		}
	}
	if !strings.Contains(said(), "data-db-0 is there already, and what is in it: nothing is restored") {
		t.Error(said())
	}
}

// Nothing is made or changed where there may be data.
func TestRestoreLeavesData(t *testing.T) {
	for path, says := range map[string]string{"statefulsets/db": "StatefulSet db", "statefulsets/db-read": "StatefulSet db-read", "persistentvolumeclaims/data-db-1": "data-db-1",
		"persistentvolumeclaims/data-db-6": "data-db-6", "persistentvolumeclaims/data-db-read-0": "data-db-read-0", ownClaim: "data-db-0"} {
		for _, begun := range []bool{false, true} {
			a := &api{objects: map[string]map[string]any{path: object(path[strings.LastIndex(path, "/")+1:], "u", nil)}, looked: ends("Complete")}
			if begun && path != ownClaim { // an emptied first member of a group that lives
				a.objects[ownClaim] = object("data-db-0", "u0", map[string]any{RestoreKey: restoring})
			}
			r, said := newRestore(t, a)
			if err := r.Run(context.Background()); err != nil || len(a.made) > 0 || !strings.Contains(said(), says) || !strings.Contains(said(), "nothing is restored") {
				t.Errorf("%s (%v): %v, %q, %s", path, begun, err, a.made, said())
			}
		}
	}
}

// One that was not finished is gone on with; a Job that was for something else is removed before.
func TestRestoreGoesOn(t *testing.T) {
	begun := func() map[string]any {
		return object("data-db-0", "u0", map[string]any{RestoreKey: restoring})
	}
	job := func(what, claim string, status map[string]any) map[string]any {
		o := object("db-restore-data", "j", map[string]any{RestoreKey: what, claimKey: claim})
		o["status"] = status
		return o
	}
	failed := map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True"}}}
	complete := map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	anew := []string{"DELETE " + ownJob, "POST jobs", "PATCH " + ownClaim, "DELETE " + ownJob}
	for name, c := range map[string]struct {
		job  map[string]any
		made []string
	}{
		"no job yet":            {nil, anew[1:]},
		"one is at it":          {job("monday", "u0", nil), anew[2:]},
		"one has just ended":    {job("monday", "u0", complete), anew[2:]},
		"one has failed":        {job("monday", "u0", failed), anew},
		"one of another":        {job("tuesday", "u0", nil), anew},
		"one of a claim before": {job("monday", "u9", complete), anew},
	} {
		a := &api{objects: map[string]map[string]any{ownClaim: begun()}}
		if c.job != nil {
			a.objects[ownJob] = c.job
		}
		looks := 0
		a.looked = func(o map[string]any) {
			if looks++; looks > 2 {
				ends("Complete")(o)
			}
		}
		r, _ := newRestore(t, a)
		if err := r.Run(context.Background()); err != nil || !slices.Equal(a.made, c.made) {
			t.Errorf("%s: %v, %q", name, err, a.made)
		}
	}
}

// A Job that fails, or waits, says why; the claim stays one that was not finished.
func TestRestoreFails(t *testing.T) {
	a := &api{objects: map[string]map[string]any{"pods": ended("the backup is damaged")}}
	looks := 0
	a.looked = func(o map[string]any) {
		if looks++; looks > 2 {
			ends("Failed")(o)
		}
	}
	r, said := newRestore(t, a)
	err := r.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "has failed: the backup is damaged") || strings.Count(said(), "waits: no node has room") != 1 {
		t.Errorf("%v\n%s", err, said())
	}
	if annotations(a.objects[ownClaim])[RestoreKey] != restoring {
		t.Errorf("%v", a.objects[ownClaim])
	}
	killed := ended("the newest backup is of monday")
	state := killed["items"].([]any)[0].(map[string]any)["status"].(map[string]any)["containerStatuses"].([]any)[0].(map[string]any)["state"].(map[string]any)
	state["terminated"].(map[string]any)["exitCode"] = 143
	a.objects["events"] = map[string]any{"items": []any{map[string]any{"type": "Warning", "reason": "BackoffLimitExceeded", "message": "too often", "lastTimestamp": "2026-01-02T00:00:00Z"}}}
	ending := map[string]any{"items": []any{map[string]any{"metadata": map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}}}}
	for want, pods := range map[string]map[string]any{"has failed: its pod is gone": {"items": []any{}}, "its pod is gone, deleted": ending, "stopped from outside. The last that it said: the newest backup is of monday": killed} {
		a.objects["pods"] = pods
		if err := r.Run(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	a.objects[ownClaim]["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	if err := r.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "is being deleted") {
		t.Error(err)
	}
}

// A Job that can make no pod tells why, while it waits and when it has failed.
func TestRestoreWithoutPods(t *testing.T) {
	events := map[string]any{"items": []any{
		map[string]any{"type": "Warning", "reason": "FailedCreate", "message": "exceeded quota: small", "lastTimestamp": "2026-01-02T00:00:00Z"},
		map[string]any{"type": "Warning", "reason": "FailedCreate", "message": "of before", "lastTimestamp": "2026-01-01T00:00:00Z"},
		map[string]any{"type": "Warning", "reason": "BackoffLimitExceeded", "message": "no matter", "lastTimestamp": "2026-01-03T00:00:00Z"},
		map[string]any{"type": "Normal", "reason": "Other", "message": "no matter", "lastTimestamp": "2026-01-03T00:00:00Z"}}}
	a := &api{objects: map[string]map[string]any{"pods": {"items": []any{}}, "events": events}}
	looks := 0
	a.looked = func(o map[string]any) {
		if looks++; looks > 2 {
			ends("Failed")(o)
		}
	}
	r, said := newRestore(t, a)
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "has failed: FailedCreate: exceeded quota: small") {
		t.Error(err)
	}
	if strings.Count(said(), "waits: FailedCreate: exceeded quota: small") != 1 {
		t.Error(said())
	}
}

// Rights that are not in force yet are waited for, and calls that fail for a while, or whose answers are lost, are made again; nothing is made twice.
func TestRestoreIsPatient(t *testing.T) {
	want := []string{"POST persistentvolumeclaims", "POST jobs", "PATCH " + ownClaim, "DELETE " + ownJob}
	for name, broken := range map[string]func(a *api){
		"no rights yet": func(a *api) { a.breaks = []int{403, 403, 403} },
		"who are you":   func(a *api) { a.breaks = []int{401} },
		"at first":      func(a *api) { a.breaks = []int{503, 500, 429} },
		"between":       func(a *api) { a.breaks = []int{0, 0, 0, 500, 0, 503} },
		"answers are lost": func(a *api) {
			a.loses = map[string]int{"POST persistentvolumeclaims": 1, "POST jobs": 1, "PATCH " + ownClaim: 1}
		},
		"nobody answers once": func(a *api) { a.breaks = []int{-1, 0, -1} },
	} {
		a := &api{objects: map[string]map[string]any{"pods": ended("restored to transaction 7")}, looked: ends("Complete")}
		broken(a)
		r, said := newRestore(t, a)
		if err := r.Run(t.Context()); err != nil {
			t.Errorf("%s: %v\n%s", name, err, said())
		}
		if made := slices.Compact(slices.Clone(a.made)); !slices.Equal(made, want) || annotations(a.objects[ownClaim])[RestoreKey] != "done: monday: restored to transaction 7" {
			t.Errorf("%s: %q, %v", name, a.made, a.objects[ownClaim])
		}
		for _, made := range []string{"POST persistentvolumeclaims", "POST jobs"} {
			if n := strings.Count(strings.Join(a.made, "\n"), made); n != 1 {
				t.Errorf("%s: %s %d times", name, made, n)
			}
		}
	}
	// What is refused for good is said at once; a wait has an end.
	for name, code := range map[string]int{"not allowed to make it": 403, "not as it has to be": 422} {
		a := &api{objects: map[string]map[string]any{}, refuses: map[string]int{"POST persistentvolumeclaims": code}}
		r, _ := newRestore(t, a)
		if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprint(code)) || len(a.made) != 1 {
			t.Errorf("%s: %v, %q", name, err, a.made)
		}
	}
	a := &api{objects: map[string]map[string]any{}, refuses: map[string]int{"POST persistentvolumeclaims": 503}}
	r, said := newRestore(t, a)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := r.Run(ctx); err == nil || strings.Count(said(), "it is tried again: making the claim for the data") != 1 {
		t.Errorf("%v\n%s", err, said())
	}
}
