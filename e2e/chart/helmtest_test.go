package chart

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// receives reports whether policies that hold for a pod's ingress let a port of it be reached by pods of the namespace with labels.
func (r *release) receives(at *corev1.PodTemplateSpec, from map[string]string, port string) bool {
	limited := false
	for _, o := range r.objects {
		p, ok := o.(*networkingv1.NetworkPolicy)
		if !ok || !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) || !labels.SelectorFromSet(p.Spec.PodSelector.MatchLabels).Matches(labels.Set(at.Labels)) {
			continue
		}
		limited = true
		for _, rule := range p.Spec.Ingress {
			of := len(rule.From) == 0 || slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool {
				return peer.PodSelector != nil && peer.NamespaceSelector == nil && labels.SelectorFromSet(peer.PodSelector.MatchLabels).Matches(labels.Set(from))
			})
			if of && slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.String() == port }) {
				return true
			}
		}
	}
	return !limited
}

// TestHelmTest: the pod of helm test may run under a quota, and reaches what it asks whatever policies say of clients and of what pods
// reach; it is taken for no member, and reaches nothing else where that is limited.
func TestHelmTest(t *testing.T) {
	const shop = "clients: [{podSelector: {matchLabels: {app: shop}}}]"
	for _, c := range []struct {
		values        string
		anybody, peer bool // clients of any kind come in; everybody reaches ports of peers
	}{
		{"{}", true, false},
		{"networkPolicy: {" + shop + "}", false, false},
		{"networkPolicy: {egress: {enabled: true}}", true, false},
		{"{readReplicas: {count: 1}, networkPolicy: {" + shop + ", monitoring: [{podSelector: {matchLabels: {app: prometheus}}}], egress: {enabled: true}}}", false, false},
		{"{readService: {enabled: false}, networkPolicy: {enabled: false}}", true, true},
	} {
		values := c.values
		r := must(t, values)
		pod := object[*corev1.Pod](t, r, "Pod/prod-db-trireme-test")
		is := &corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
		for _, c := range append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...) {
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: %s does not say what it needs: %+v", values, c.Name, c.Resources)
			}
		}
		for name, o := range r.objects {
			s, ok := o.(*appsv1.StatefulSet)
			if !ok {
				continue
			}
			member := &s.Spec.Template
			for port, want := range map[string]bool{"mysql": true, "mysql-read": true, "peers": c.peer} {
				if got := r.reaches(is, member.Labels, port) && r.receives(member, pod.Labels, port); got != want {
					t.Errorf("%s: that it reaches %s of %s is %v", values, port, name, got)
				}
			}
			if r.receives(member, map[string]string{"app": "other"}, "mysql") != c.anybody {
				t.Errorf("%s: that anybody reaches %s is not as values say", values, name)
			}
			if labels.SelectorFromSet(s.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels)) {
				t.Errorf("%s: it is one of %s", values, name)
			}
		}
		if r.objects["NetworkPolicy/prod-db-trireme-test"] != nil && r.reaches(is, map[string]string{"app": "other"}, "mysql") {
			t.Errorf("%s: it reaches others", values)
		}
	}
}
