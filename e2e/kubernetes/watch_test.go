//go:build kubernetes

package kubernetes

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/triremedb/trireme/server/kubernetes"
)

const (
	// watchEvery is how often the group is looked at from outside.
	watchEvery = 250 * time.Millisecond
	// stopMax is for how long nothing may be acknowledged while a majority of the voters is there. Programs
	// give up a silent leader after two seconds, within which the others have elected one; a start of another
	// election, the programs' pauses between tries, and a machine of two processors that runs all of it take the rest.
	stopMax = 5 * time.Second
	// lostMax is for how long a majority may not be there where one member is not whole from the beginning on, and no
	// other ends but when the group can do without it: members that stand still, or are busy, may be slow to answer.
	lostMax = time.Second
	// againMax is how long a stop may be where a member comes to be not whole while another one is just being started again.
	againMax = 15 * time.Second
	// leftMax is for how long a member may be left over that its set has no place for: 20 s until it is taken out,
	// as long as its statements may take besides if it still answers (10 s here), and what it takes to notice and do.
	leftMax = time.Minute
)

// watch looks at a group from outside while something happens to it.
type watch struct {
	g    *group
	end  chan struct{}
	task sync.WaitGroup

	mu       sync.Mutex
	disabled map[string]int // by pods' UIDs: what is done to them keeps them from voting
	mayCrash bool           // a pod is made to
	taken    map[string]int // claims that are deleted by the tests

	// What is known, by the task alone.
	samples  []sample
	claims   map[string]string        // their UIDs by their names
	voters   map[uint64]string        // of the newest leader: pods by members
	term     uint64                   // of that leader
	beyond   map[uint64]time.Duration // members without a place: for how long others could have taken them out
	restarts map[string]string        // why containers were started again
	before   map[string]int           // by pods' UIDs: how often containers had been started again before
	wrong    []string
}

// sample is how many voters the group had at a moment, and how many of them were able to vote.
type sample struct {
	at           time.Time
	voters, able int
}

func (s *sample) majority() bool { return s.able > s.voters/2 }

// lost tells whether a group that bears the loss of a member has no majority.
func (s *sample) lost() bool { return s.voters >= 3 && !s.majority() }

// spares tells whether a group goes on with one member that is not whole.
func (s *sample) spares() bool { return s.voters >= 3 }

func (g *group) watch() *watch {
	w := &watch{g: g, end: make(chan struct{}), disabled: map[string]int{}, taken: map[string]int{}, claims: map[string]string{},
		voters: map[uint64]string{}, beyond: map[uint64]time.Duration{}, restarts: map[string]string{}, before: map[string]int{}}
	w.task.Go(func() {
		for {
			w.look()
			select {
			case <-w.end:
				return
			case <-time.After(watchEvery):
			}
		}
	})
	return w
}

// stop ends the watch; what it has seen may be asked for then.
func (w *watch) stop() {
	close(w.end)
	w.task.Wait()
}

// disable notes that a pod is kept from voting, or is not any more.
func (w *watch) disable(uid string, by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disabled[uid] += by
}

// take notes that a claim is going to be deleted by the tests.
func (w *watch) take(claim string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken[claim]++
}

// crash allows pods to crash.
func (w *watch) crash() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mayCrash = true
}

// blame notes what is wrong, once.
func (w *watch) blame(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, known := range w.wrong {
		if known == text {
			return
		}
	}
	w.wrong = append(w.wrong, text)
}

func (w *watch) look() {
	pods, err := w.g.pods(namespace, members)
	if err != nil {
		return // a look without the API tells nothing
	}
	kept, err := w.kept()
	if err != nil {
		return
	}
	now := time.Now()
	says := make([]*standing, len(pods))
	var asked sync.WaitGroup
	for i := range pods {
		if pods[i].Status.IP == "" {
			continue
		}
		asked.Go(func() {
			if r, err := w.g.briefly(&pods[i]); err == nil {
				says[i] = &r
			}
		})
	}
	asked.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	leads := false
	for _, r := range says {
		if r == nil || !r.Status.Writable || r.Status.Term < w.term {
			continue
		}
		leads, w.term, w.voters = true, r.Status.Term, map[uint64]string{}
		for _, m := range r.Members {
			if !m.Learner {
				w.voters[m.ID], _, _ = strings.Cut(m.Addr, ".")
			}
		}
	}
	able := map[uint64]bool{}
	for i, r := range says {
		if r != nil && !r.Starting && !r.Status.Provisioning && w.disabled[pods[i].Meta.UID] == 0 && w.voters[r.Member] != "" {
			able[r.Member] = true
		}
	}
	w.samples = append(w.samples, sample{now, len(w.voters), len(able)})
	w.containers(pods)
	if leads {
		w.gone(kept)
		w.places(able)
	}
	w.keepLogs()
}

// containers looks for those that cannot be started.
func (w *watch) containers(pods []pod) {
	for _, p := range pods {
		for _, c := range p.Status.Containers {
			before, known := w.before[p.Meta.UID]
			if !known {
				if len(w.samples) == 1 {
					before = c.Restarts
				}
				w.before[p.Meta.UID] = before
			}
			if c.Restarts > before && c.Last.Terminated.Reason != "" {
				w.restarts[fmt.Sprint(p.Meta.Name, " ", p.Meta.UID)] = fmt.Sprintf("%s started again %d times, after %s", p.Meta.Name, c.Restarts-before, c.Last.Terminated.Reason)
			}
			// One that was killed now and minutes ago waits once, and is started.
			if c.State.Waiting.Reason == "CrashLoopBackOff" && c.Restarts > before && !w.mayCrash {
				w.blame("%s is in CrashLoopBackOff", p.Meta.Name)
			}
		}
	}
}

// kept are the members' claims that are not deleted.
func (w *watch) kept() (map[string]string, error) {
	var all list[claim]
	if err := w.g.api.get("/api/v1/namespaces/"+namespace+"/persistentvolumeclaims", &all); err != nil {
		return nil, err
	}
	kept := map[string]string{}
	for _, c := range all.Items {
		if strings.HasPrefix(c.Meta.Name, "data-"+name+"-") && c.Meta.Deleted == nil {
			kept[c.Meta.Name] = c.Meta.UID
		}
	}
	return kept, nil
}

// gone looks at claims that go. Which are there was asked before the leader was asked who its members are.
func (w *watch) gone(kept map[string]string) {
	for claim, uid := range w.claims {
		if kept[claim] == uid {
			continue
		}
		pod := strings.TrimPrefix(claim, "data-")
		if w.taken[claim] > 0 {
			w.taken[claim]--
			continue
		}
		for id, of := range w.voters {
			if of == pod {
				w.blame("the claim %s is deleted, and member %d of that pod has not left", claim, id)
			}
		}
	}
	w.claims = kept
}

// places looks at members that stay.
func (w *watch) places(able map[uint64]bool) {
	var set struct {
		Spec struct {
			Replicas int `json:"replicas"`
		} `json:"spec"`
	}
	if w.g.api.get("/apis/apps/v1/namespaces/"+namespace+"/statefulsets/"+name, &set) != nil {
		return
	}
	if n := len(w.samples); n > 1 && set.Spec.Replicas > 0 {
		passed := w.samples[n-1].at.Sub(w.samples[n-2].at)
		for id, pod := range w.voters {
			_, ordinal, _ := kubernetes.Place(pod)
			if ordinal < set.Spec.Replicas {
				delete(w.beyond, id)
				continue
			}
			others := len(able)
			if able[id] {
				others--
			}
			if others <= (len(w.voters)-1)/2 {
				continue // the others could not do without it
			}
			if w.beyond[id] += passed; w.beyond[id] > leftMax {
				w.blame("member %d of %s is left over, %v after it could be taken out", id, pod, leftMax)
			}
		}
	}
}

// saved is where logs of containers are kept whose pods are gone.
func (g *group) saved() string { return filepath.Join(g.dir, "saved") }

// keepLogs keeps the logs of containers, which the kubelet removes with their pods.
func (w *watch) keepLogs() {
	for _, m := range w.g.nodes {
		logs, _ := filepath.Glob(filepath.Join(m.dir(), "logs", namespace+"_*", "*", "*.log"))
		for _, log := range logs {
			to := filepath.Join(w.g.saved(), filepath.Base(filepath.Dir(filepath.Dir(log))), filepath.Base(log))
			if os.MkdirAll(filepath.Dir(to), 0o755) == nil {
				_ = os.Link(log, to) // it may be there already
			}
		}
	}
}

// stopped is the longest time in which nothing was acknowledged though something held, and how it ended.
func (w *watch) stopped(pauses []pause, holds func(*sample) bool) (longest time.Duration, end sample) {
	for _, p := range pauses {
		var since time.Time
		for i := range w.samples {
			s := &w.samples[i]
			switch {
			case s.at.Before(p.from) || s.at.After(p.to):
			case !holds(s):
				since = time.Time{}
			case since.IsZero():
				since = s.at
			case s.at.Sub(since) > longest:
				longest, end = s.at.Sub(since), *s
			}
		}
	}
	return longest, end
}

// again says which containers were started again.
func (w *watch) again() (all []string) {
	for text := range maps.Values(w.restarts) {
		all = append(all, text)
	}
	return all
}
