package chart

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// leads are the names of the pods that a Service leads to.
func (r *release) leads(t *testing.T, service string) string {
	t.Helper()
	var names []string
	selector := labels.SelectorFromSet(object[*corev1.Service](t, r, "Service/"+service).Spec.Selector)
	for _, p := range r.pods() {
		if selector.Matches(labels.Set(p.Labels)) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestReadService: clients that read are served by whoever is ready, also while a first read replica is given its data; by read
// replicas alone if that is asked for. No job, test or backup is taken for one.
func TestReadService(t *testing.T) {
	const all = ", backup: {enabled: true}, upgrade: {check: {group: always}}, restore: {from: a/b, existingClaim: c}}"
	for _, c := range []struct{ values, reads string }{
		{"{readReplicas: {count: 0}", set},
		{"{readReplicas: {count: 2}", set + " " + readSet},
		{"{readReplicas: {count: 2}, readService: {from: null}", set + " " + readSet}, // values of a release from before
		{"{readReplicas: {count: 2}, readService: {from: replicas}", readSet},
		{"{readReplicas: {count: 0}, readService: {from: replicas}", set},
	} {
		r := must(t, c.values+all)
		if got := r.leads(t, set+"-read"); got != c.reads {
			t.Errorf("%s}: reads are of %s, not %s", c.values, got, c.reads)
		}
		if got := r.leads(t, set); got != set {
			t.Errorf("%s}: writes are of %s", c.values, got)
		}
		both := set
		if strings.Contains(c.values, "count: 2") {
			both += " " + readSet
		}
		if got := r.leads(t, set+"-peers"); got != both {
			t.Errorf("%s}: peers are %s", c.values, got)
		}
	}
}
