package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/triremedb/trireme/server/kubernetes"
)

const prepareText = `Prepares the StatefulSets of a release for what Helm changes next; for jobs of the Helm chart. SET=PODS are sets
and how many pods they are to have from now on.

Helm cannot change what claims a StatefulSet makes, nor the number of its pods where kubectl or an autoscaler has
set it to another one. So the claims are expanded, and a set that Helm could not change is deleted without its
pods, which run on: Helm makes it anew, and the new one takes them over. Nothing is changed if anything of it
cannot be: a claim that does not grow, or would have to be smaller or of another storage class. Claims of a set that is
set aside get annotations that keep Argo CD from deleting them. Nor is anything changed if Kubernetes would not take the new set.`

func runPrepare(args []string) error {
	f := flags("prepare [options] SET=PODS ...", prepareText)
	p := preparation{say: func(text string) { fmt.Println(text) }}
	f.StringVar(&p.size, "size", "", "the `size` of each claim, as Kubernetes writes it (20Gi)")
	f.IntVar(&p.claims, "claims", 32, "how many claims a set may have, those of pods that it had before included")
	f.StringVar(&p.class, "storage-class", "", "the storage `class` of each claim; empty: the default one")
	modes := f.String("access-modes", "", "access `modes` of claims that are made from now on, parted by commas; empty: those of the set")
	f.Func("claim-annotations", "`annotations` of claims that are made from now on, as a JSON object; missing: those of the set", func(text string) error {
		p.annotations = map[string]string{}
		return json.Unmarshal([]byte(text), &p.annotations)
	})
	f.Func("template", "`SET=JSON` of the pods that a set is to have: a set is set aside only if Kubernetes would take one of such pods. Once for each set", func(text string) error {
		name, of, _ := strings.Cut(text, "=")
		t := podTemplate{set: name}
		if err := json.Unmarshal([]byte(of), &t.template); err != nil || name == "" {
			return fmt.Errorf("it is not SET=JSON: %w", err)
		}
		p.templates = append(p.templates, t)
		return nil
	})
	f.BoolVar(&p.keep, "keep-claims", false, "leave the claims that are there as they are: only new ones have the size and the storage class")
	f.BoolVar(&p.rollback, "rollback", false, "claims that are there grow if they can, and are no reason to stop")
	f.DurationVar(&p.wait, "wait", time.Minute, "how long to wait for Kubernetes")
	f.StringVar(&p.otherwise, "otherwise", "", "`words` that are added to a refusal: how to go on all the same")
	credentials := f.String("credentials", "/var/run/secrets/kubernetes.io/serviceaccount", "`directory` with the token, ca.crt and namespace of the pod's service account")
	if err := parse(f, args); err != nil {
		return err
	}
	var err error
	if p.bytes, err = kubernetes.Quantity(p.size); err != nil {
		return misuse(f, "--size: %v", err)
	}
	if *modes != "" {
		p.modes = strings.Split(*modes, ",")
	}
	if p.claims < 0 || p.wait <= 0 || f.NArg() == 0 {
		return misuse(f, "give sets, and no negative numbers or times")
	}
	for _, word := range f.Args() {
		name, pods, _ := strings.Cut(word, "=")
		n, err := strconv.Atoi(pods)
		if name == "" || err != nil || n < 0 {
			return misuse(f, "%q is not SET=PODS, as db=3", word)
		}
		p.sets = append(p.sets, wantedSet{name: name, pods: n})
	}
	if p.api, err = kubernetes.NewClient(*credentials); err != nil {
		return err
	}
	p.api.Patient = true // else a set may be gone, and nobody makes it anew
	ctx, cancel := context.WithTimeout(context.Background(), p.wait)
	defer cancel()
	return p.run(ctx)
}

// wantedSet is a set as it is to be, and as it is.
type wantedSet struct {
	name   string
	pods   int
	now    kubernetes.Set
	claims []kubernetes.Claim
	anew   bool // it has to be made anew
}

// podTemplate is that of the pods which a set is to have.
type podTemplate struct {
	set      string
	template map[string]any
}

// preparation makes way for Helm.
type preparation struct {
	api            *kubernetes.Client
	sets           []wantedSet
	size, class    string
	bytes          int64
	modes          []string          // nil: not said
	annotations    map[string]string // nil: not said
	claims         int
	templates      []podTemplate
	keep, rollback bool
	wait           time.Duration
	otherwise      string
	say            func(text string)

	expand []kubernetes.Claim // those that are to grow
	bad    []string           // why nothing may be changed
	advice []string
}

// run looks at everything before it changes anything. It may be run again after any of its steps.
func (p *preparation) run(ctx context.Context) error {
	if err := p.api.AwaitRights(ctx, p.sets[0].name); err != nil {
		return err
	}
	for i := range p.sets {
		if err := p.look(ctx, &p.sets[i]); err != nil {
			return err
		}
	}
	p.tryTemplates(ctx)
	if len(p.bad) > 0 {
		text := "trireme prepare: nothing was changed:\n  " + strings.Join(append(p.bad, p.advice...), "\n  ")
		if p.otherwise != "" {
			text += "\n" + p.otherwise
		}
		fmt.Fprintln(os.Stderr, text)
		return errFailed
	}
	for i := range p.expand {
		c := &p.expand[i]
		if err := p.api.Expand(ctx, c, p.size, false); err != nil {
			return p.halfway(i, err)
		}
		p.say(fmt.Sprintf("%s grows from %s to %s", c.Name, c.Size, p.size))
	}
	if err := p.annotateAll(ctx); err != nil {
		return err
	}
	for i := range p.sets {
		s := &p.sets[i]
		if !s.anew {
			continue
		}
		p.say(s.name + " is set aside, its pods run on: Helm makes it anew")
		if err := p.api.SetAside(ctx, &s.now); err != nil {
			return err
		}
	}
	p.say("all is prepared")
	return nil
}

// tryTemplates asks whether Helm will be able to make the sets that are to be set aside: else nobody would look after their pods. If one is set aside all
// templates are tried, since Helm makes none if it cannot make another.
func (p *preparation) tryTemplates(ctx context.Context) {
	i := slices.IndexFunc(p.sets, func(s wantedSet) bool { return s.anew })
	if i < 0 {
		return
	}
	for _, t := range p.templates {
		by := &p.sets[i].now // of a set that there is not yet
		for j := range p.sets {
			if s := &p.sets[j]; s.name == t.set && s.now.Exists() {
				by = &s.now
			}
		}
		refused, err := p.api.TryTemplate(ctx, by, t.template)
		switch {
		case err != nil: // as by a webhook that cannot be tried
			p.say(fmt.Sprintf("whether Kubernetes takes %s as it is to be cannot be tried: %v", t.set, err))
		case refused != "":
			p.refuse(fmt.Sprintf("Kubernetes would not take %s as it is to be: %s", t.set, refused),
				"Correct the values: the set has to be made anew for the change of its claims or of its size, and would be gone.")
		}
	}
}

// Argo CD takes claims that no StatefulSet has for objects that it has made itself, by their label app.kubernetes.io/instance, and deletes objects that its
// source does not have. While a set is aside these would be the claims with the data.
const (
	argoKey  = "argocd.argoproj.io/sync-options"
	argoKeep = "Prune=false,Delete=false"
)

// annotateAll does so with all claims of sets that are to be set aside, before any is.
func (p *preparation) annotateAll(ctx context.Context) error {
	for i := range p.sets {
		for j := range p.sets[i].claims {
			if c := &p.sets[i].claims[j]; p.sets[i].anew {
				if err := p.annotate(ctx, c); err != nil {
					return fmt.Errorf("the claim %s gets no annotations: %w", c.Name, err)
				}
			}
		}
	}
	return nil
}

// annotate gives a claim whose set is to be set aside an annotation that keeps Argo CD from deleting it, and the annotations that are wanted of claims.
func (p *preparation) annotate(ctx context.Context, c *kubernetes.Claim) error {
	wanted := map[string]string{}
	if _, has := c.Annotations[argoKey]; !has {
		wanted[argoKey] = argoKeep
	}
	if !p.keep {
		for key, value := range p.annotations {
			if has, ok := c.Annotations[key]; !ok || has != value {
				wanted[key] = value
			}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return p.api.Annotate(ctx, c, wanted)
}

// halfway is the error for a claim that does not grow although each alone would, as under a quota that has room for some of them. It names the claims
// that have grown already.
func (p *preparation) halfway(i int, err error) error {
	c := &p.expand[i]
	has := "nothing was changed"
	if i > 0 {
		var names []string
		for _, grown := range p.expand[:i] {
			names = append(names, grown.Name)
		}
		has = strings.Join(names, ", ") + " asked for it already, which stays so, and nothing else was changed"
	}
	return fmt.Errorf("the claim %s does not grow from %s to %s: %w\n%s. Make room, by a ResourceQuota that has enough for all claims for one, and run helm upgrade once more: it goes on where it was",
		c.Name, c.Size, p.size, err, has)
}

// look says what is to become of a set and its claims.
func (p *preparation) look(ctx context.Context, s *wantedSet) (err error) {
	if s.now, err = p.api.Set(ctx, s.name); err != nil {
		return err
	}
	if p.rollback && s.now.Exists() && s.now.Release == "" {
		p.say(s.name + " is no set that Helm has made: nothing goes back, and it stays as it is")
		return nil
	}
	was := int64(0) // of a set that is gone nobody knows
	if s.now.Exists() {
		if was, err = kubernetes.Quantity(s.now.Size); err != nil {
			return fmt.Errorf("the claims of the StatefulSet %s: %w", s.name, err)
		}
	}
	resized, other := was != p.bytes, s.now.Class != p.class
	scaled := s.now.Scaled && s.now.Pods() != s.pods
	// Claims that are there stay as they are: modes and annotations are of new claims.
	newOnes := p.modes != nil && !slices.Equal(p.modes, s.now.Modes) || p.annotations != nil && !maps.Equal(p.annotations, s.now.Annotations)
	s.anew = s.now.Exists() && (resized || other || scaled || newOnes)
	if !resized && !s.anew {
		return nil
	}
	for i := range p.claims {
		claim, found, err := p.api.Claim(ctx, s.name, i)
		if err != nil {
			return err
		}
		if found && !claim.Goes {
			s.claims = append(s.claims, claim)
		}
	}
	const instead = "or make a new release of a backup, or give one member after the other a new volume: docs/operations-kubernetes.md, Volumes."
	if s.anew && !p.keep && !p.rollback {
		if p.bytes < was {
			p.refuse(fmt.Sprintf("%s has volumes of %s, which do not become smaller: %s is less", s.name, s.now.Size, p.size),
				fmt.Sprintf("Keep persistence.size=%s, %s", s.now.Size, instead))
		}
		if other {
			p.refuse(fmt.Sprintf("%s has volumes of the storage class %q, which do not come to be of %q", s.name, s.now.Class, p.class),
				fmt.Sprintf("Keep persistence.storageClass=%s, %s", s.now.Class, instead))
		}
	}
	if resized && !p.keep {
		if err := p.grow(ctx, s); err != nil {
			return err
		}
	}
	for i := range s.claims {
		if c := &s.claims[i]; s.anew && c.OwnedBy(&s.now) {
			p.owned(s, c)
			break
		}
	}
	return nil
}

// grow finds the claims that are to grow, and tries whether they would.
func (p *preparation) grow(ctx context.Context, s *wantedSet) error {
	for i := range s.claims {
		c := &s.claims[i]
		has, err := kubernetes.Quantity(c.Size)
		if err != nil {
			return fmt.Errorf("the claim %s: %w", c.Name, err)
		}
		if has >= p.bytes {
			if has > p.bytes {
				p.say(fmt.Sprintf("%s stays as it is: it has %s already", c.Name, c.Size))
			}
			continue
		}
		err = p.api.Expand(ctx, c, p.size, true)
		switch {
		case err == nil:
			p.expand = append(p.expand, *c)
		case kubernetes.Passes(err): // and has not
			return err
		case p.rollback:
			p.say(fmt.Sprintf("%s stays as it is: it does not grow from %s to %s: %v", c.Name, c.Size, p.size, err))
		default:
			p.refuse(fmt.Sprintf("%s does not grow from %s to %s: %v", c.Name, c.Size, p.size, err),
				"A claim grows that has its volume, of a storage class with allowVolumeExpansion: true. If yours cannot do that: docs/operations-kubernetes.md, Volumes.")
		}
	}
	return nil
}

// owned refuses to set a set aside to which a claim belongs: data could go with it.
func (p *preparation) owned(s *wantedSet, c *kubernetes.Claim) {
	advice := "First helm upgrade --set persistence.whenDeleted=Retain and nothing else, wait until the members run, then this one."
	if s.now.Pods() != s.pods && s.now.Scaled {
		advice = fmt.Sprintf("First kubectl scale statefulset %s --replicas=%d, which is what helm upgrade wants, then this one.", s.name, s.pods)
	}
	p.refuse(fmt.Sprintf("%s belongs to the StatefulSet %s and could be deleted with it (persistence.whenDeleted is Delete), and Helm cannot change the set as it is",
		c.Name, s.name), advice)
}

// refuse notes why nothing may be changed, and what to do, once.
func (p *preparation) refuse(why string, advice ...string) {
	p.bad = append(p.bad, why)
	for _, a := range advice {
		if !strings.Contains(strings.Join(p.advice, "\n"), a) {
			p.advice = append(p.advice, a)
		}
	}
}
