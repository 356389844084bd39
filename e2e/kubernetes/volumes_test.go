//go:build kubernetes

package kubernetes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// stored is the members' StatefulSet with what its claims ask for.
type stored struct {
	Meta meta `json:"metadata"`
	Spec struct {
		Claims []claim `json:"volumeClaimTemplates"`
	} `json:"spec"`
}

func (g *group) set() (s stored) {
	g.t.Helper()
	g.must(g.api.get("/apis/apps/v1/namespaces/"+namespace+"/statefulsets/"+name, &s))
	return s
}

// sized demands that the set makes claims of a size, that those of members have another, and that all pods are the set's.
func (g *group) sized(template, claims string) {
	g.t.Helper()
	s := g.set()
	if got := s.Spec.Claims[0].Spec.Resources.Requests.Size; got != template {
		g.t.Errorf("the set makes claims of %s, not %s", got, template)
	}
	g.eventually("the volumes have "+claims, func() error {
		var all list[claim]
		if err := g.api.get("/api/v1/namespaces/"+namespace+"/persistentvolumeclaims", &all); err != nil {
			return err
		}
		for _, c := range all.Items {
			if strings.HasPrefix(c.Meta.Name, "data-"+name+"-") && (c.Status.Capacity.Size != claims || c.Spec.Resources.Requests.Size != claims) {
				return fmt.Errorf("%s has %s and asks for %s", c.Meta.Name, c.Status.Capacity.Size, c.Spec.Resources.Requests.Size)
			}
		}
		return nil
	})
	g.eventually("the set has taken its pods over", func() error {
		for _, p := range g.members() {
			if len(p.Meta.Owners) != 1 || p.Meta.Owners[0].UID != s.Meta.UID {
				return fmt.Errorf("%s belongs to %v", p.Meta.Name, p.Meta.Owners)
			}
		}
		return nil
	})
}

// undisturbed demands that nothing was started anew, and that writes went on.
func (g *group) undisturbed(b *bank, before []string, what string) {
	g.t.Helper()
	if after := g.fingerprint(); !slices.Equal(before, after) {
		g.t.Errorf("%s: pods are %q, not %q", what, after, before)
	}
	if gap := b.goesOn(); gap > usual {
		g.t.Errorf("%s: nothing was written for %v", what, gap)
	}
}

// volumesGrow: claims grow while the group is used, and no pod is started anew; what cannot be is refused before anything
// is changed; and an upgrade that was cut short between the end of the old set and the new one is made good by the next one.
func (g *group) volumesGrow(t *testing.T, b *bank) string {
	before := g.fingerprint()
	g.refused(t, []string{name + " has volumes of 20Gi, which do not become smaller: 10Gi is less", "or give one member after the other a new volume"}, "--set=persistence.size=10Gi")
	g.refused(t, []string{"data-" + name + "-0 does not grow from 20Gi to 40Gi", "allowVolumeExpansion: true"}, "--set=persistence.size=40Gi")
	g.sized("20Gi", "20Gi")

	g.must(g.api.call("PATCH", "/apis/storage.k8s.io/v1/storageclasses/"+class, map[string]any{"allowVolumeExpansion": true}, nil))
	was := g.set().Meta.UID
	g.refused(t, []string{"Kubernetes would not take " + name + " as it is to be", "field label not supported: spec.nothing"},
		"--set=persistence.size=40Gi,extraEnv[0].name=NOTHING,extraEnv[0].valueFrom.fieldRef.fieldPath=spec.nothing")
	g.sized("20Gi", "20Gi")
	if g.set().Meta.UID != was {
		t.Error("the set was set aside for one that Kubernetes does not take")
	}
	began := time.Now()
	g.upgrade("--set=persistence.size=40Gi")
	g.sized("40Gi", "40Gi")
	took := time.Since(began)
	g.undisturbed(b, before, "volumes have grown")
	g.noJobs(t)
	if g.set().Meta.UID == was {
		t.Error("the set is the one of before")
	}
	g.whole(3)

	// What else is said of claims is of those that are made from now on.
	g.upgrade("--set=persistence.annotations.note=new,persistence.accessModes={ReadWriteOncePod}")
	if c := g.set().Spec.Claims[0]; c.Meta.Annotations["note"] != "new" || string(c.Spec.Modes) != `["ReadWriteOncePod"]` {
		t.Errorf("the set makes claims with %v and %s", c.Meta.Annotations, c.Spec.Modes)
	}
	g.undisturbed(b, before, "other claims are made from now on")
	g.upgrade("--set=persistence.annotations=null,persistence.accessModes={ReadWriteOnce}")
	g.sized("40Gi", "40Gi")

	// The program that ran Helm ended between the two.
	g.kubectl("-n", namespace, "delete", "statefulset", name, "--cascade=orphan")
	g.eventually("nobody may be evicted", func() error {
		var budget struct {
			Status struct {
				Allowed  int `json:"disruptionsAllowed"`
				Expected int `json:"expectedPods"`
			} `json:"status"`
		}
		err := g.api.get("/apis/policy/v1/namespaces/"+namespace+"/poddisruptionbudgets/"+name, &budget)
		if s := budget.Status; err == nil && (s.Allowed != 0 || s.Expected != 0) {
			err = fmt.Errorf("of %d pods %d may be", s.Expected, s.Allowed)
		}
		return err
	})
	g.keeps(b, 3)
	g.upgrade("--set=persistence.size=40Gi")
	g.sized("40Gi", "40Gi")
	g.undisturbed(b, before, "the set was made again")

	// A member's pod is deleted meanwhile: nothing but an upgrade brings it back.
	g.kubectl("-n", namespace, "delete", "statefulset", name, "--cascade=orphan")
	gone := g.follower()
	g.must(g.api.remove(g.podPath(gone.Meta.Name)))
	g.gone(&gone)
	g.upgrade("--set=persistence.size=40Gi")
	g.whole(3)
	before = g.fingerprint()

	// What has grown stays so.
	g.helm("rollback", release, g.revisionBefore(release, 5), "--namespace="+namespace, "--wait", "--timeout=5m")
	g.sized("20Gi", "40Gi")
	g.undisturbed(b, before, "the size was taken back")
	g.noJobs(t)
	g.whole(3)

	// A member that is given a new volume gets a smaller one.
	g.volumeLost(t, b)
	var all list[claim]
	g.must(g.api.get("/api/v1/namespaces/"+namespace+"/persistentvolumeclaims", &all))
	smaller := 0
	for _, c := range all.Items {
		if strings.HasPrefix(c.Meta.Name, "data-"+name+"-") && c.Status.Capacity.Size == "20Gi" {
			smaller++
		}
	}
	if smaller != 1 {
		t.Errorf("%d volumes are smaller", smaller)
	}
	return fmt.Sprintf(", of which %s until all volumes had grown", round(took))
}
