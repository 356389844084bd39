package kubectl

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

func (p *Plugin) none(args []string) error {
	if len(args) > 0 {
		return p.misuse("unexpected %q", args[0])
	}
	return nil
}

type statefulSet struct {
	Meta meta `json:"metadata"`
	Spec struct {
		Replicas int `json:"replicas"`
		Ordinals struct {
			Start int `json:"start"`
		} `json:"ordinals"`
	} `json:"spec"`
	Status struct {
		Ready   int `json:"readyReplicas"`
		Updated int `json:"updatedReplicas"`
	} `json:"status"`
}

// pod is the number of a pod of the set, by its name.
func (s *statefulSet) pod(name string) (ordinal int, ok bool) {
	rest, ours := strings.CutPrefix(name, s.Meta.Name+"-")
	ordinal, err := strconv.Atoi(rest)
	return ordinal, ours && err == nil && ordinal >= 0
}

// drops reports whether the set has no place for a pod any more, so that its member leaves and its claim is deleted. A set of no pods hibernates.
func (s *statefulSet) drops(name string) bool {
	ordinal, ok := s.pod(name)
	return ok && s.Spec.Replicas > 0 && (ordinal < s.Spec.Ordinals.Start || ordinal >= s.Spec.Ordinals.Start+s.Spec.Replicas)
}

type claim struct {
	Meta   meta `json:"metadata"`
	Status struct {
		Phase    string            `json:"phase"`
		Capacity map[string]string `json:"capacity"`
	} `json:"status"`
}

// status tells what Kubernetes knows of the group, and what the group knows of itself.
func (p *Plugin) status(args []string) error {
	if err := p.none(args); err != nil {
		return err
	}
	pods, err := p.pods()
	if err != nil {
		return err
	}
	selector := p.selector()
	sets, err := get[statefulSet](p, "statefulsets", "-l", selector)
	if err != nil {
		return err
	}
	claims, err := get[claim](p, "persistentvolumeclaims", "-l", selector)
	if err != nil {
		return err
	}
	if len(sets) == 0 && len(pods) == 0 && len(claims) == 0 {
		return fmt.Errorf("there is no release %s here", p.release)
	}
	whole := true
	rows := [][]any{{"STATEFULSET", "WANTED", "READY", "OF THE NEW REVISION"}}
	for i := range sets {
		s := &sets[i]
		whole = whole && s.Status.Ready >= s.Spec.Replicas
		rows = append(rows, []any{s.Meta.Name, s.Spec.Replicas, s.Status.Ready, s.Status.Updated})
	}
	p.table(rows)
	if !slices.ContainsFunc(sets, func(s statefulSet) bool { return s.Meta.Labels[componentLabel] == "member" }) {
		whole = false
		_, _ = fmt.Fprintf(p.Stdout, "release %s has no StatefulSet of its members: pods that end are not started again until helm upgrade makes it anew (helm install, if the release was removed). Its claims stay.\n\n", p.release)
	}
	rows = [][]any{{"POD", "READY", "STATE", "RESTARTS", "NODE"}}
	for i := range pods {
		q := &pods[i]
		rows = append(rows, []any{q.Meta.Name, q.ready(), q.state(), q.restarts(), q.Spec.Node})
	}
	p.table(rows)
	rows = [][]any{{"CLAIM", "STATE", "SIZE"}}
	var going, leave []string
	for i := range claims {
		c := &claims[i]
		state := c.Status.Phase
		if c.Meta.Deleted != nil {
			state = "Terminating"
			if slices.ContainsFunc(sets, func(s statefulSet) bool { return s.drops(strings.TrimPrefix(c.Meta.Name, "data-")) }) {
				leave = append(leave, c.Meta.Name)
			} else {
				going = append(going, c.Meta.Name)
			}
		}
		rows = append(rows, []any{c.Meta.Name, state, c.Status.Capacity["storage"]})
	}
	p.table(rows)
	if len(leave) > 0 {
		_, _ = fmt.Fprintf(p.Stdout, "%s: its StatefulSet has no place for that pod any more; the claim goes when the pod has ended\n\n", strings.Join(leave, ", "))
	}
	if len(going) > 0 {
		whole = false
		_, _ = fmt.Fprintf(p.Stdout, "%s: somebody has deleted it. Kubernetes keeps it as long as its pod runs, and nothing takes that back: "+
			"do not hibernate the group, nor scale it down. docs/operations-kubernetes.md, Claims that are being deleted\n\n", strings.Join(going, ", "))
	}
	if err := p.showEvents(known(sets, pods, claims)); err != nil {
		return err
	}
	s, err := p.server()
	if err != nil {
		_, _ = fmt.Fprintln(p.Stdout, err)
		return ErrFailed
	}
	if err := p.through(inside(s.Meta.Name, "status", "--http=127.0.0.1:18080")...); err != nil {
		return err
	}
	if !whole {
		return ErrFailed
	}
	return nil
}

// table writes rows, and an empty line.
func (p *Plugin) table(rows [][]any) {
	w := tabwriter.NewWriter(p.Stdout, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				_, _ = fmt.Fprint(w, "\t")
			}
			_, _ = fmt.Fprint(w, cell)
		}
		_, _ = fmt.Fprintln(w)
	}
	_ = w.Flush()
	_, _ = fmt.Fprintln(p.Stdout)
}

func (p *Plugin) sql(args []string) error {
	s, err := p.server()
	if err != nil {
		return err
	}
	words := inside(s.Meta.Name, append([]string{"sql", "--port=3306", "--password-file=" + passwordFile}, args...)...)
	words = slices.Insert(words, 1, "-i")
	if p.Terminal {
		words = slices.Insert(words, 1, "-t")
	}
	return p.through(words...)
}

func (p *Plugin) admin(args []string) error {
	s, err := p.server()
	if err != nil {
		return err
	}
	return p.through(inside(s.Meta.Name, append([]string{"admin", "--password-file=" + passwordFile}, args...)...)...)
}

// switchover hands leadership over, and waits until the other leads.
func (p *Plugin) switchover(args []string) error {
	if len(args) > 1 {
		return p.misuse("unexpected %q", args[1])
	}
	if len(args) == 0 {
		return p.admin([]string{"transfer"})
	}
	pods, err := p.pods()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(pods, func(q pod) bool { return q.Meta.Name == args[0] }) { // members of groups have the same numbers
		return fmt.Errorf("%s is no pod of release %s, or of another group in it", args[0], p.release)
	}
	out, err := p.output(inside(args[0], "status", "--http=127.0.0.1:18080", "--json")...)
	if err != nil {
		return err
	}
	var r struct {
		Member uint64 `json:"member"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if r.Member == 0 {
		return fmt.Errorf("%s is no member of the group yet", args[0])
	}
	return p.admin([]string{"transfer", strconv.FormatUint(r.Member, 10)})
}

func (p *Plugin) logs(args []string) error {
	if _, err := p.pods(); err != nil {
		return err
	}
	// kubectl follows five containers at most if it is not told.
	words := []string{"logs", "-l", p.selector() + "," + componentLabel + " in (member,replica)", "-c", container,
		"--prefix", "--max-log-requests=100"}
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--tail") || strings.HasPrefix(a, "--since") }) {
		words = append(words, "--tail=1000")
	}
	return p.through(append(words, args...)...)
}
