package chart

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
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

// TestPublishedPorts: clients outside of the cluster do not reach the port of metrics and status, which ask for no password, unless that is
// asked for; and the others as values say.
func TestPublishedPorts(t *testing.T) {
	for _, c := range []struct{ values, ports, reads string }{
		{"{}", "mysql grpc http", ""},
		{"service: {type: LoadBalancer}", "mysql grpc", ""},
		{"service: {type: NodePort, nodePort: 30306}", "mysql grpc", ""},
		{"service: {type: LoadBalancer, http: true, grpc: false}", "mysql http", ""},
		{"service: {http: false}", "mysql grpc", ""},
		{"service: {grpc: null, loadBalancerSourceRanges: null}", "mysql grpc http", ""}, // values of a release from before
		{"{service: {type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.0/8]}, readService: {type: LoadBalancer, loadBalancerSourceRanges: [10.1.0.0/16, 10.2.0.0/16]}}", "mysql grpc", "10.1.0.0/16 10.2.0.0/16"},
	} {
		r := must(t, c.values)
		var names []string
		s := object[*corev1.Service](t, r, "Service/"+set)
		for _, p := range s.Spec.Ports {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != c.ports {
			t.Errorf("%s: %s, not %s", c.values, got, c.ports)
		}
		reads := object[*corev1.Service](t, r, "Service/"+readSet)
		if got := strings.Join(reads.Spec.LoadBalancerSourceRanges, " "); got != c.reads || len(reads.Spec.Ports) != 1 || c.reads != "" && len(s.Spec.LoadBalancerSourceRanges) != 1 {
			t.Errorf("%s: reads from %q, by %v", c.values, got, reads.Spec.Ports)
		}
	}
	backup := object[*batchv1.CronJob](t, must(t, "{service: {grpc: false}, backup: {enabled: true}}"), "CronJob/prod-db-trireme-backup").Spec.JobTemplate.Spec.Template.Spec
	if args := strings.Join(backup.Containers[0].Args, " "); !strings.Contains(args, "--grpc=prod-db-trireme-2.") || strings.Contains(args, ",prod-db-trireme.prod.svc") {
		t.Errorf("a backup is asked of the Service, which has no such port: %s", args)
	}
}
