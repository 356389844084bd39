package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/triremedb/trireme/server/kubernetes"
)

// TestSetsAreNamed: the members' set says which sets there are to be, whether they have pods for now or not; its pods do not, which
// would be started anew.
func TestSetsAreNamed(t *testing.T) {
	for values, want := range map[string]string{"{}": set, "readReplicas: {count: 2}": set + "," + readSet, "hibernate: true": set,
		"{hibernate: true, readReplicas: {count: 1}}": set + "," + readSet} {
		r := must(t, values)
		s := object[*appsv1.StatefulSet](t, r, "StatefulSet/"+set)
		if got := s.Annotations["trireme.io/sets"]; got != want {
			t.Errorf("%s: %q, not %q", values, got, want)
		}
		if _, has := s.Spec.Template.Annotations["trireme.io/sets"]; has {
			t.Errorf("%s: pods have it", values)
		}
		if read, ok := r.objects["StatefulSet/"+readSet].(*appsv1.StatefulSet); ok && len(read.Annotations) > 0 {
			t.Errorf("%s: that of read replicas says %v, and may be gone", values, read.Annotations)
		}
	}
}

// TestClaimsOfAllThatMayBe: claims of as many read replicas as there may have been are looked for, can be deleted and grow, however many there are now.
func TestClaimsOfAllThatMayBe(t *testing.T) {
	var values struct {
		Properties struct {
			ReadReplicas struct {
				Properties struct{ Count struct{ Maximum int } }
			}
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "values.schema.json"))
	if err == nil {
		err = json.Unmarshal(b, &values)
	}
	most := values.Properties.ReadReplicas.Properties.Count.Maximum
	if err != nil || most < 1 {
		t.Fatal(most, err)
	}
	if most != kubernetes.PodsMax {
		t.Errorf("the server looks at claims of %d pods, not of %d", kubernetes.PodsMax, most)
	}
	for _, with := range []string{"{}", fmt.Sprintf("readReplicas: {count: %d}", most)} {
		r := must(t, with)
		last := "data-" + readSet + "-" + strconv.Itoa(most-1)
		for _, role := range []string{set, set + ".prepare"} {
			if !slices.ContainsFunc(object[*rbacv1.Role](t, r, "Role/"+role).Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.ResourceNames, last) }) {
				t.Errorf("%s: the role %s knows no %s", with, role, last)
			}
		}
		if a := object[*batchv1.Job](t, r, "Job/prod-db-trireme-prepare-rollback").Spec.Template.Spec.Containers[0].Args; !slices.Contains(a, "--claims="+strconv.Itoa(most)) {
			t.Errorf("%s: the job looks at others: %q", with, a)
		}
	}
}
