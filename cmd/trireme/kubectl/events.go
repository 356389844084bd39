package kubectl

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

type event struct {
	Meta     meta   `json:"metadata"`
	Type     string `json:"type"`
	Reason   string `json:"reason"`
	Message  string `json:"message"`
	Involved struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
		UID  string `json:"uid"`
	} `json:"involvedObject"`
	Last   time.Time `json:"lastTimestamp"`
	Micro  time.Time `json:"eventTime"`
	Series *struct {
		Last time.Time `json:"lastObservedTime"`
	} `json:"series"`
}

func (e *event) at() time.Time {
	if e.Series != nil && e.Series.Last.After(e.Last) {
		return e.Series.Last
	}
	if e.Last.IsZero() {
		return e.Micro
	}
	return e.Last
}

// recent is how old the events are that status shows.
const recent = 10 * time.Minute

// objects are what there is now of the release, by kind and name.
type objects struct {
	all  map[[2]string]meta
	sets []statefulSet
}

func known(sets []statefulSet, pods []pod, claims []claim) objects {
	o := objects{map[[2]string]meta{}, sets}
	for i := range pods {
		o.all[[2]string{"Pod", pods[i].Meta.Name}] = pods[i].Meta
	}
	for i := range claims {
		o.all[[2]string{"PersistentVolumeClaim", claims[i].Meta.Name}] = claims[i].Meta
	}
	for i := range sets {
		m := sets[i].Meta
		for j := range pods { // a set that an upgrade has made anew has its pods from before
			if _, ok := sets[i].pod(pods[j].Meta.Name); ok && pods[j].Meta.Created.Before(m.Created) {
				m.Created = pods[j].Meta.Created
			}
		}
		m.UID = ""
		o.all[[2]string{"StatefulSet", m.Name}] = m
	}
	return o
}

// gone reports whether an event is of a pod, a claim or a set that is no more: another one may have its name. Of other objects, as pods of Jobs, nothing is known.
func (o *objects) gone(e *event) bool {
	m, ok := o.all[[2]string{e.Involved.Kind, e.Involved.Name}]
	if ok {
		other := m.UID != "" && e.Involved.UID != "" && m.UID != e.Involved.UID
		return other || e.at().Before(m.Created)
	}
	name := strings.TrimPrefix(e.Involved.Name, "data-")
	return (e.Involved.Kind == "Pod" || e.Involved.Kind == "PersistentVolumeClaim") &&
		slices.ContainsFunc(o.sets, func(s statefulSet) bool { _, is := s.pod(name); return is })
}

// events are those of the release's objects, the oldest first.
func (p *Plugin) events() ([]event, error) {
	all, err := get[event](p, "events")
	if err != nil {
		return nil, err
	}
	sets, err := get[statefulSet](p, "statefulsets", "-l", p.selector())
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(e event) bool {
		return !slices.ContainsFunc(sets, func(s statefulSet) bool {
			rest, ours := strings.CutPrefix(strings.TrimPrefix(e.Involved.Name, "data-"), s.Meta.Name)
			return ours && (rest == "" || rest[0] == '-')
		})
	})
	slices.SortStableFunc(all, func(a, b event) int { return a.at().Compare(b.at()) })
	return all, nil
}

// shownEvents is how many events status shows at most.
const shownEvents = 20

// over are the reasons of events that say that something is over, by those that say that it has begun.
var over = map[string]string{"NoMajority": "MajorityBack", "MemberApart": "MemberBack", "OtherGroup": "OtherGroupGone", "FoundingWaits": "FoundingGoesOn", "JoinWaits": "Joined", "CertificateUnusable": "CertificateUsable"}

// speaker is who says so, as far as the text of an event tells: member 7, or the address that it begins with.
func (e *event) speaker() string {
	words := strings.Fields(e.Message)
	if len(words) > 1 && words[0] == "member" {
		return words[1]
	}
	return strings.Join(words[:min(len(words), 1)], "")
}

// showEvents shows recent warnings, and what the group has said that it waits for, the newest first: of each
// reason and object what was said last, since what it waited for before is no longer true. What is over, or is of objects that are gone, is left out.
func (p *Plugin) showEvents(now objects) error {
	all, err := p.events()
	if err != nil {
		return err
	}
	type about struct{ object, reason string }
	said := map[about]int{}
	ended := map[[3]string]bool{} // object, reason and who said so
	var last []*event
	for i := range slices.Backward(all) {
		e := &all[i]
		if time.Since(e.at()) >= recent {
			break
		}
		if now.gone(e) {
			continue
		}
		ended[[3]string{e.Involved.Name, e.Reason, e.speaker()}] = true
		if end := over[e.Reason]; end != "" && ended[[3]string{e.Involved.Name, end, e.speaker()}] {
			continue
		}
		if e.Type != "Warning" && !strings.HasSuffix(e.Reason, "Waits") && e.Reason != "MemberStays" {
			continue
		}
		key := about{e.Involved.Name, e.Reason}
		if said[key]++; said[key] == 1 {
			last = append(last, e)
		}
	}
	if len(last) == 0 {
		return nil
	}
	more := len(last) - shownEvents
	last = last[:min(len(last), shownEvents)]
	for _, e := range last {
		again := ""
		if n := said[about{e.Involved.Name, e.Reason}]; n > 1 {
			again = fmt.Sprintf(" (the last of %d)", n)
		}
		_, _ = fmt.Fprintf(p.Stdout, "%s ago, %s: %s: %s%s\n",
			time.Since(e.at()).Round(time.Second), e.Involved.Name, e.Reason, strings.TrimSpace(e.Message), again)
	}
	if more > 0 {
		_, _ = fmt.Fprintf(p.Stdout, "%d more events are older; kubectl get events shows all\n", more)
	}
	_, _ = fmt.Fprintln(p.Stdout)
	return nil
}
