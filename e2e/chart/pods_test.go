package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// extras are values of a workload's pods, in which each name tells whose they are.
func extras(of string) string {
	return strings.ReplaceAll(`podLabels: {of: OF}, podAnnotations: {of: OF}, extraEnv: [{name: OF, value: v}], extraEnvFrom: [{secretRef: {name: OF}}],
		extraVolumes: [{name: OF, emptyDir: {}}], extraVolumeMounts: [{name: OF, mountPath: /OF}], nodeSelector: {of: OF}, tolerations: [{key: OF, effect: NoExecute, tolerationSeconds: 300}],
		affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: OF, operator: Exists}]}}]}},
		topologySpreadConstraints: [{maxSkew: 1, topologyKey: OF, whenUnsatisfiable: ScheduleAnyway}], priorityClassName: OF,
		initContainers: [{name: first-OF, image: i}, {name: beside-OF, image: i, restartPolicy: Always, securityContext: {runAsUser: 7}}]`, "OF", of)
}

// describe tells whose the parts of a pod are that values may give it.
func describe(t *testing.T, p *corev1.PodTemplateSpec) string {
	t.Helper()
	c := p.Spec.Containers[0]
	env, from, volume, mount, rule, init := "-", "-", "-", "-", "-", "-"
	if n := len(c.Env); n > 0 && c.Env[n-1].Value == "v" {
		env = c.Env[n-1].Name
	}
	if len(c.EnvFrom) > 0 {
		from = c.EnvFrom[0].SecretRef.Name
	}
	if n := len(p.Spec.Volumes); n > 0 && p.Spec.Volumes[n-1].EmptyDir != nil && p.Spec.Volumes[n-1].Name != "tmp" {
		volume = p.Spec.Volumes[n-1].Name
	}
	if n := len(c.VolumeMounts); n > 0 && "/"+c.VolumeMounts[n-1].Name == c.VolumeMounts[n-1].MountPath && c.VolumeMounts[n-1].Name != "tmp" {
		mount = c.VolumeMounts[n-1].Name
	}
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		rule = a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Preference.MatchExpressions[0].Key
	}
	if is := p.Spec.InitContainers; len(is) == 2 {
		init = strings.TrimPrefix(is[0].Name, "first-")
		if is[1].Name != "beside-"+init || *is[1].RestartPolicy != corev1.ContainerRestartPolicyAlways || *is[1].SecurityContext.RunAsUser != 7 {
			t.Errorf("%+v", is[1])
		}
	}
	spread, toleration := "-", "-"
	if s := p.Spec.TopologySpreadConstraints; len(s) == 1 && !strings.Contains(s[0].TopologyKey, "zone") {
		spread = s[0].TopologyKey
	}
	if s := p.Spec.Tolerations; len(s) == 1 && *s[0].TolerationSeconds == 300 {
		toleration = s[0].Key
	}
	checkRestricted(t, &corev1.Pod{ObjectMeta: p.ObjectMeta, Spec: p.Spec})
	return fmt.Sprint(p.Labels["of"], p.Annotations["of"], " ", env, from, volume, mount, init, " ", p.Spec.NodeSelector["of"], toleration, rule, spread, p.Spec.PriorityClassName)
}

// workloads are the pods of a release by what they are for.
func workloads(t *testing.T, r *release) map[string]*corev1.PodTemplateSpec {
	t.Helper()
	return map[string]*corev1.PodTemplateSpec{
		"members":  &object[*appsv1.StatefulSet](t, r, "StatefulSet/"+set).Spec.Template,
		"replicas": &object[*appsv1.StatefulSet](t, r, "StatefulSet/"+readSet).Spec.Template,
		"backup":   &object[*batchv1.CronJob](t, r, "CronJob/prod-db-trireme-backup").Spec.JobTemplate.Spec.Template,
		"check":    &object[*batchv1.Job](t, r, "Job/prod-db-trireme-check").Spec.Template,
		"prepare":  &object[*batchv1.Job](t, r, "Job/prod-db-trireme-prepare-rollback").Spec.Template,
	}
}

// TestPodsOfValues: each workload has what values give it; read replicas have what the members have, and jobs run where these
// do, unless values say otherwise.
func TestPodsOfValues(t *testing.T) {
	const none = " ----- " + "---"
	for _, c := range []struct {
		values string
		want   map[string]string
	}{
		{"{" + extras("m") + ", readReplicas: {count: 1}, backup: {enabled: true}}", map[string]string{
			"members": "mm mmmmm mmmmm", "replicas": "mm mmmmm mmmmm", "backup": " ----- mm--m", "check": " ----- mm--m", "prepare": " ----- mm--m"}},
		{"{" + extras("m") + ", readReplicas: {count: 1, " + extras("r") + "}, backup: {enabled: true, " + extras("b") + "}, upgrade: {check: {" + extras("c") + "}}}", map[string]string{
			"members": "mm mmmmm mmmmm", "replicas": "rr rrrrr rrrrr", "backup": "bb bbbbb bbbbb", "check": "cc ccccc ccccc", "prepare": "cc ccccc ccccc"}},
		{"{" + extras("m") + ", readReplicas: {count: 1, extraEnv: [], podLabels: {}, initContainers: [], nodeSelector: {}, priorityClassName: ''}, backup: {enabled: true, tolerations: []}}", map[string]string{
			"members": "mm mmmmm mmmmm", "replicas": "m -mmm- mmm", "backup": " ----- m---m", "check": " ----- mm--m", "prepare": " ----- mm--m"}},
		{"{readReplicas: {count: 1}, backup: {enabled: true}}", map[string]string{"members": none, "replicas": none, "backup": none, "check": none, "prepare": none}},
	} {
		for name, p := range workloads(t, must(t, c.values)) {
			if got, want := describe(t, p), c.want[name]; got != want {
				t.Errorf("%s: the pods of %s are %q, not %q", c.values, name, got, want)
			}
		}
	}
}

// TestSidecars: the server stays the first container and what kubectl shows; containers that say nothing of their security are as
// restricted as it is.
func TestSidecars(t *testing.T) {
	r := must(t, "{readReplicas: {count: 1, securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: false, capabilities: {drop: [ALL]}}}, sidecars: [{name: exporter, image: e, ports: [{name: metrics, containerPort: 9000}]}, {name: own, image: o, securityContext: {readOnlyRootFilesystem: false}}]}")
	for _, name := range []string{set, readSet} {
		p := object[*appsv1.StatefulSet](t, r, "StatefulSet/"+name).Spec.Template
		cs := p.Spec.Containers
		if len(cs) != 3 || cs[0].Name != "trireme" || p.Annotations["kubectl.kubernetes.io/default-container"] != "trireme" {
			t.Fatalf("%s: %v, %v", name, cs, p.Annotations)
		}
		for i, c := range cs {
			s := c.SecurityContext
			if *s.AllowPrivilegeEscalation || s.Privileged != nil || !slices.Contains(s.Capabilities.Drop, "ALL") {
				t.Errorf("%s: %s: %+v", name, c.Name, s)
			}
			if name == set && *s.ReadOnlyRootFilesystem != (i < 2) || name == readSet && *s.ReadOnlyRootFilesystem {
				t.Errorf("%s: %s: its root may be written: %v", name, c.Name, !*s.ReadOnlyRootFilesystem)
			}
			if i > 0 && (c.Lifecycle != nil || c.ReadinessProbe != nil) {
				t.Errorf("%s: %+v", name, c)
			}
		}
		checkRestricted(t, &corev1.Pod{ObjectMeta: p.ObjectMeta, Spec: p.Spec})
	}
}

// TestReadReplicasDisrupted: a node may be drained of read replicas one by one, or as values say; members are counted apart.
func TestReadReplicasDisrupted(t *testing.T) {
	if must(t, "{}").objects["PodDisruptionBudget/"+readSet] != nil || must(t, "readReplicas: {count: 2, podDisruptionBudget: {enabled: false}}").objects["PodDisruptionBudget/"+readSet] != nil {
		t.Error("there is one for nothing")
	}
	for values, want := range map[string]string{"readReplicas: {count: 2}": "1", "readReplicas: {count: 9, podDisruptionBudget: {maxUnavailable: 30%}}": "30%"} {
		r := must(t, values)
		b := object[*policyv1.PodDisruptionBudget](t, r, "PodDisruptionBudget/"+readSet)
		if b.Spec.MaxUnavailable.String() != want || *b.Spec.UnhealthyPodEvictionPolicy != policyv1.IfHealthyBudget {
			t.Errorf("%s: %+v", values, b.Spec)
		}
		for name, is := range map[string]bool{set: false, readSet: true} {
			p := object[*appsv1.StatefulSet](t, r, "StatefulSet/"+name).Spec.Template
			if labels.SelectorFromSet(b.Spec.Selector.MatchLabels).Matches(labels.Set(p.Labels)) != is {
				t.Errorf("%s: that it is for %s is %v", values, name, !is)
			}
		}
	}
}

// reaches reports whether policies that hold for a pod's egress let it reach a port of pods with labels; no labels: of anybody
// outside. Nobody is limited for whom there is no policy.
func (r *release) reaches(from *corev1.PodTemplateSpec, to map[string]string, port string) bool {
	limited := false
	for _, o := range r.objects {
		p, ok := o.(*networkingv1.NetworkPolicy)
		if !ok || !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || !labels.SelectorFromSet(p.Spec.PodSelector.MatchLabels).Matches(labels.Set(from.Labels)) {
			continue
		}
		limited = true
		for _, rule := range p.Spec.Egress {
			there := len(rule.To) == 0
			for _, peer := range rule.To {
				there = there || peer.PodSelector != nil && labels.SelectorFromSet(peer.PodSelector.MatchLabels).Matches(labels.Set(to)) || to == nil && peer.IPBlock != nil
			}
			if there && slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
				if p.Protocol != nil && *p.Protocol == corev1.ProtocolUDP {
					return port == p.Port.String()+"/UDP"
				}
				return port == p.Port.String()
			}) {
				return true
			}
		}
	}
	return !limited
}

// TestEgress: with networkPolicy.egress pods reach what they need, and nothing else.
func TestEgress(t *testing.T) {
	const values = `{readReplicas: {count: 1}, backup: {enabled: true}, discovery: {type: etcd, etcd: {endpoints: ['http://a:2379', 'http://b:2379', 'https://c:4001/']}},
		tracing: {endpoint: 'https://collector:4317'}, networkPolicy: {egress: {enabled: true, etcd: [{ipBlock: {cidr: 10.0.0.0/8}}], extra: [{ports: [{port: 9999}]}]}}}`
	member := map[string]string{"app.kubernetes.io/name": "trireme", "app.kubernetes.io/instance": "prod-db"}
	outside := map[string]string{"app": "other"}
	r := must(t, values)
	node := []string{"53", "53/UDP", "peers", "mysql", "grpc", "443", "6443", "4317", "9999", "outside:2379", "outside:4001"}
	for name, want := range map[string][]string{
		"members": node, "replicas": node, "backup": {"53", "53/UDP", "grpc", "9999"}, "check": {"53", "53/UDP", "http"}, "prepare": {"443", "6443"}} {
		p := workloads(t, r)[name]
		var got []string
		for _, port := range []string{"53", "53/UDP", "peers", "mysql", "grpc", "http", "443", "6443", "2379", "4001", "4317", "9999", "80"} {
			if r.reaches(p, member, port) {
				got = append(got, port)
			} else if r.reaches(p, nil, port) {
				got = append(got, "outside:"+port)
			}
			if named := strings.Trim(port, "0123456789/UDP"); named != "" && r.reaches(p, outside, port) {
				t.Errorf("%s reach %s of others", name, port)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s reach %v, not %v", name, got, want)
		}
	}
	for _, values := range []string{"{readReplicas: {count: 1}, backup: {enabled: true}}", "{readReplicas: {count: 1}, backup: {enabled: true}, networkPolicy: {egress: null}}",
		"{readReplicas: {count: 1}, backup: {enabled: true}, networkPolicy: {enabled: false, egress: {enabled: true}}}"} {
		r := must(t, values)
		for name, p := range workloads(t, r) {
			if !r.reaches(p, outside, "80") {
				t.Errorf("%s: %s are limited", values, name)
			}
		}
	}
	// Also where nobody leaves pods look at claims.
	if r := must(t, "{leaveWhenScaled: false, networkPolicy: {egress: {enabled: true}}}"); !r.reaches(&object[*appsv1.StatefulSet](t, r, "StatefulSet/"+set).Spec.Template, outside, "6443") {
		t.Error("pods do not reach the API")
	}
}

// TestRegistryOfOneDomain: pods keep away from a registry that those of another namespace use, unless values let them. What the release is called there, and
// where, does not depend on its namespace: an upgrade would part its members.
func TestRegistryOfOneDomain(t *testing.T) {
	const etcd = "discovery: {type: etcd, etcd: {endpoints: ['http://etcd:2379']%s}}"
	with := must(t, fmt.Sprintf(etcd, "")).settings(t)
	for _, line := range []string{"etcd_domain = " + set + "-peers.prod.svc.cluster.local\n", "etcd_prefix = /trireme/\n", "cluster_name = " + set + "\n"} {
		if !strings.Contains(with, line) {
			t.Errorf("it does not say %s: %s", line, with)
		}
	}
	for _, values := range []string{"{}", fmt.Sprintf(etcd, ", anyDomain: true")} {
		if c := must(t, values).settings(t); strings.Contains(c, "etcd_domain") {
			t.Errorf("%s: %s", values, c)
		}
	}
}

// TestNamesOfVolumes: no volume of values' own has the name of one that the chart gives the same pods.
func TestNamesOfVolumes(t *testing.T) {
	names := map[string]string{}
	look := func(r *release, of string) {
		for _, p := range r.pods() {
			if strings.HasSuffix(p.Name, "-test") || strings.Contains(p.Name, "-restore") || strings.Contains(p.Name, "-backup-volume") {
				continue // which have none of values' own
			}
			for _, v := range p.Spec.Volumes {
				names[v.Name] = of
			}
		}
	}
	for name, values := range installations {
		if name != "placed" {
			look(must(t, values), name)
		}
	}
	look(upgraded(t, running(3), "{upgrade: {check: {group: always}}, monitoring: {token: {existingSecret: scrape}}}"), "an upgrade")
	look(must(t, "{upgrade: {check: {group: always}}, monitoring: {token: {existingSecret: scrape}}, peerTLS: {source: secret, existingSecret: peers}}"), "tools that render without the cluster")
	if len(names) < 10 {
		t.Errorf("only %v", names)
	}
	for name, of := range names {
		if _, err := render("extraVolumes: [{name: " + name + ", emptyDir: {}}]"); err == nil || !strings.Contains(err.Error(), "extraVolumes") {
			t.Errorf("%s, of %s, may be one of extraVolumes: %v", name, of, err)
		}
	}
}

// TestEgressToDNS: DNS is reached by the ports at which its pods listen.
func TestEgressToDNS(t *testing.T) {
	for values, ports := range map[string][]string{"": {"53", "53/UDP"}, ", dnsPorts: null": {"53", "53/UDP"}, ", dnsPorts: [5353]": {"5353", "5353/UDP"}} {
		r := upgraded(t, running(3), "networkPolicy: {egress: {enabled: true"+values+"}}")
		for _, pod := range []*corev1.PodTemplateSpec{&object[*appsv1.StatefulSet](t, r, "StatefulSet/"+set).Spec.Template, &object[*batchv1.Job](t, r, "Job/"+set+"-check").Spec.Template} {
			for _, port := range []string{"53", "53/UDP", "5353", "5353/UDP"} {
				if got := r.reaches(pod, map[string]string{"k8s-app": "kube-dns"}, port); got != slices.Contains(ports, port) {
					t.Errorf("%q: that port %s is reached is %v", values, port, got)
				}
			}
		}
	}
}
