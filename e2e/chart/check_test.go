package chart

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	common "helm.sh/helm/v4/pkg/chart/common"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// seen is a cluster whose objects templates can look at: documents by "Kind/name".
type seen map[string]string

func (s seen) GetClientFor(_, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return seenKind{of: s, kind: kind}, true, nil
}

type seenKind struct {
	dynamic.NamespaceableResourceInterface
	of   seen
	kind string
}

func (k seenKind) Namespace(string) dynamic.ResourceInterface { return k }

func (k seenKind) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	text, ok := k.of[k.kind+"/"+name]
	if !ok {
		return nil, errors.NewNotFound(schema.GroupResource{Resource: k.kind}, name)
	}
	o := &unstructured.Unstructured{}
	return o, yaml.Unmarshal([]byte(text), &o.Object)
}

func (k seenKind) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	all := &unstructured.UnstructuredList{}
	for key, text := range k.of {
		if !strings.HasPrefix(key, k.kind+"/") {
			continue
		}
		o := unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			return nil, err
		}
		all.Items = append(all.Items, o)
	}
	return all, nil
}

// upgraded renders the chart as helm upgrade does; in may be nil.
func upgraded(t *testing.T, in seen, values string) *release {
	t.Helper()
	as := common.ReleaseOptions{Name: "prod-db", Namespace: "prod", IsUpgrade: true, Revision: 2}
	r, err := renderIn(nil, as, values)
	if in != nil {
		r, err = renderIn(in, as, values)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// running is a cluster in which the release has so many members.
func running(members int) seen {
	return seen{
		"StatefulSet/prod-db-trireme":     "{metadata: {name: prod-db-trireme}, spec: {replicas: " + strconv.Itoa(members) + "}}",
		"ServiceAccount/prod-db-trireme":  "{metadata: {name: prod-db-trireme}}",
		"Secret/prod-db-trireme-peer-tls": "{metadata: {name: prod-db-trireme-peer-tls}, data: {tls.crt: YQ==}}",
	}
}

// founders is the ConfigMap that says how many members there are.
func founders(members int) string {
	return "{metadata: {name: f}, data: {founders: '" + strconv.Itoa(members) + "'}}"
}

// TestWaking: a group none of which runs is not started with so few of its members that they are no majority, nor has it fewer members while
// it sleeps, so that nobody knows how many they are.
func TestWaking(t *testing.T) {
	for _, c := range []struct {
		name, values      string
		running, founders int
		says              string
	}{
		{"as it was", "replicaCount: 5", 0, 5, ""},
		{"by a majority", "replicaCount: 3", 0, 5, ""},
		{"by fewer", "replicaCount: 1", 0, 3, "wake it with replicaCount=3"},
		{"by three of seven", "replicaCount: 3", 0, 7, "none of the group's 7 members runs, and 3 of them are no majority"},
		{"by more", "replicaCount: 5", 0, 3, ""},
		{"it runs, and the job asks it", "replicaCount: 1", 3, 3, ""},
		{"it sleeps on", "{replicaCount: 3, hibernate: true}", 0, 3, ""},
		{"fewer while it sleeps", "{replicaCount: 3, hibernate: true}", 0, 5, "Change replicaCount before it hibernates"},
		{"fewer as it falls asleep", "{replicaCount: 3, hibernate: true}", 5, 5, "a group of 5 members that hibernates cannot come to have 3"},
		{"its set is gone", "replicaCount: 3", -1, 3, ""},
		{"its set is gone, by a majority", "replicaCount: 3", -1, 5, ""},
		{"its set is gone, by fewer", "replicaCount: 1", -1, 3, "the StatefulSet of the group's 3 members is gone, and 1 of them are no majority, without which nothing can be decided, nor members taken out: wake it with replicaCount=3"},
		{"its set is gone, and it sleeps with fewer", "{replicaCount: 1, hibernate: true}", -1, 3, "Change replicaCount before it hibernates"},
		{"its set is gone, all the same", "{replicaCount: 1, upgrade: {check: {group: false}}}", -1, 3, ""},
		{"all the same", "{replicaCount: 1, upgrade: {check: {group: false}}}", 0, 3, ""},
		{"nobody knows", "replicaCount: 1", 0, 0, ""},
	} {
		in := running(c.running)
		if c.running < 0 {
			delete(in, "StatefulSet/prod-db-trireme")
		}
		if c.founders > 0 {
			in["ConfigMap/prod-db-trireme-founders"] = founders(c.founders)
		}
		_, err := renderIn(in, common.ReleaseOptions{Name: "prod-db", Namespace: "prod", IsUpgrade: true, Revision: 2}, c.values)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := render("{replicaCount: 1, hibernate: true}"); err != nil {
		t.Errorf("an installation: %v", err)
	}
}

// option is what the job's program is told; "": nothing.
func option(t *testing.T, r *release, name string) string {
	t.Helper()
	for _, a := range object[*batchv1.Job](t, r, "Job/prod-db-trireme-check").Spec.Template.Spec.Containers[0].Args {
		if value, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

const peersOf = ".prod-db-trireme-peers.prod.svc.cluster.local:18080"

// TestCheckJob: who is asked before an upgrade, and with what.
func TestCheckJob(t *testing.T) {
	hosts := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, "prod-db-trireme-"+strconv.Itoa(i)+peersOf)
		}
		return strings.Join(all, ",")
	}
	for _, c := range []struct {
		name                              string
		release                           *release
		http, running, members, container string
	}{
		{"an installation", must(t, "{}"), "", "", "", "2Gi"},
		{"an installation, always", must(t, "upgrade: {check: {group: always}}"), hosts(7), "", "3", "2Gi"},
		{"an upgrade", upgraded(t, running(3), "{}"), hosts(7), "3", "3", "2Gi"},
		{"more members", upgraded(t, running(3), "replicaCount: 5"), hosts(7), "3", "5", "2Gi"},
		{"fewer members", upgraded(t, running(5), "replicaCount: 3"), hosts(7), "5", "3", "2Gi"},
		{"all were stopped", upgraded(t, running(0), "{}"), "", "", "", "2Gi"},
		{"their set is gone", upgraded(t, seen{}, "{}"), hosts(7), "", "3", "2Gi"},
		{"their set is gone, and fewer are to be", upgraded(t, seen{"ConfigMap/prod-db-trireme-founders": founders(5)}, "{}"), hosts(7), "", "3", "2Gi"},
		{"their set is gone, and more are to be", upgraded(t, seen{"ConfigMap/prod-db-trireme-founders": founders(3)}, "replicaCount: 5"), hosts(7), "", "5", "2Gi"},
		{"fewer than the value run", upgraded(t, func() seen { in := running(1); in["ConfigMap/prod-db-trireme-founders"] = founders(3); return in }(), "{}"), hosts(7), "1", "3", "2Gi"},
		{"no cluster to look at", upgraded(t, nil, "{}"), hosts(7), "", "3", "2Gi"},
		{"the group is not asked", upgraded(t, running(3), "upgrade: {check: {group: false}}"), "", "", "", "2Gi"},
		{"more run than a release may have", upgraded(t, running(9), "{}"), hosts(9), "9", "3", "2Gi"},
		{"replicas with less memory", upgraded(t, running(3), "readReplicas: {count: 1, resources: {limits: {memory: 1Gi}}}"), hosts(7), "3", "3", "2Gi,1Gi"},
		{"no limit", must(t, "resources: {limits: null}"), "", "", "", "none"},
	} {
		for name, want := range map[string]string{"http": c.http, "running": c.running, "members": c.members, "container-memory": c.container} {
			if got := option(t, c.release, name); got != want {
				t.Errorf("%s: %s is %q, not %q", c.name, name, got, want)
			}
		}
	}
	if r := must(t, "upgrade: {check: {enabled: false}}"); r.objects["Job/prod-db-trireme-check"] != nil {
		t.Error("there is a job")
	}
	const gone = "The ConfigMap prod-db-trireme-founders is gone"
	if says := option(t, upgraded(t, running(3), "{}"), "otherwise"); !strings.HasPrefix(says, gone) {
		t.Errorf("pods do not start for want of their founders: %s", says)
	}
	in := running(3)
	in["ConfigMap/prod-db-trireme-founders"] = founders(3)
	if says := option(t, upgraded(t, in, "{}"), "otherwise"); !strings.HasPrefix(says, "The Service prod-db-trireme-peers is gone") {
		t.Errorf("no member is found for want of the Service: %s", says)
	}
	named := func(r *release) bool {
		args := object[*batchv1.Job](t, r, "Job/prod-db-trireme-check").Spec.Template.Spec.Containers[0].Args
		return slices.Contains(args, "--named")
	}
	if named(upgraded(t, in, "{}")) {
		t.Error("without the Service no name says nothing")
	}
	in["Service/prod-db-trireme-peers"] = "{metadata: {name: prod-db-trireme-peers}}"
	if !named(upgraded(t, in, "{}")) {
		t.Error("it is not known that no member runs where none has a name")
	}
	if says := option(t, upgraded(t, in, "{}"), "otherwise"); !strings.Contains(says, "change it while all are stopped") || !strings.Contains(says, "hibernate=true") {
		t.Errorf("where no majority runs nobody knows what to do: %s", says)
	}
	for values, want := range map[string]bool{"{}": false, "persistence: {size: 40Gi}": true, "replicaCount: 5": false,
		"{persistence: {size: 40Gi}, upgrade: {prepare: {keepClaims: true}}}": false, "{persistence: {size: 40Gi}, upgrade: {prepare: {enabled: false}}}": false} {
		args := object[*batchv1.Job](t, upgraded(t, standing(set+" 20Gi 3 helm"), values), "Job/prod-db-trireme-check").Spec.Template.Spec.Containers[0].Args
		if slices.Contains(args, "--grows-disks") != want {
			t.Errorf("%s: %v", values, args)
		}
	}
	for _, r := range []*release{upgraded(t, in, "{}"), upgraded(t, nil, "{}"), upgraded(t, seen{}, "{}"), must(t, "upgrade: {check: {group: always}}")} {
		if says := option(t, r, "otherwise"); strings.Contains(says, "is gone") || says == "" {
			t.Errorf("nothing is gone: %s", says)
		}
	}
}

// TestCheckJobIsNoMember: no Service, set or policy takes the job for a member; it has the nodes' settings and no token.
func TestCheckJobIsNoMember(t *testing.T) {
	for _, r := range []*release{must(t, "{}"), upgraded(t, running(3), "networkPolicy: {monitoring: [{namespaceSelector: {}}]}")} {
		job := object[*batchv1.Job](t, r, "Job/prod-db-trireme-check")
		pod := job.Spec.Template
		checkRestricted(t, &corev1.Pod{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec})
		if got, want := settingsOf(t, &pod), r.settings(t); got != want {
			t.Errorf("the job checks\n%s\nand nodes start with\n%s", got, want)
		}
		if *pod.Spec.AutomountServiceAccountToken || pod.Spec.RestartPolicy != corev1.RestartPolicyNever || *job.Spec.BackoffLimit != 0 {
			t.Errorf("%+v", pod.Spec)
		}
		if a := job.Annotations; a["helm.sh/hook"] != "pre-install,pre-upgrade" || a["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
			t.Errorf("%v", a)
		}
		set := object[*appsv1.StatefulSet](t, r, "StatefulSet/prod-db-trireme")
		if labels.SelectorFromSet(set.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels)) {
			t.Error("it is one of the set")
		}
		for key, o := range r.objects {
			if s, ok := o.(*corev1.Service); ok && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels)) {
				t.Errorf("%s leads to it", key)
			}
		}
		policy := object[*networkingv1.NetworkPolicy](t, r, "NetworkPolicy/prod-db-trireme.check")
		if a := policy.Annotations; a["helm.sh/hook"] != "pre-install,pre-upgrade" || a["helm.sh/hook-weight"] != "-1" || a["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
			t.Errorf("it is not there when the job asks, or stays: %v", a)
		}
		if !slices.ContainsFunc(policy.Spec.Ingress, func(in networkingv1.NetworkPolicyIngressRule) bool {
			return len(in.Ports) == 1 && in.Ports[0].Port.StrVal == "http" && len(in.From) == 1 && in.From[0].PodSelector != nil &&
				labels.SelectorFromSet(in.From[0].PodSelector.MatchLabels).Matches(labels.Set(pod.Labels))
		}) {
			t.Error("it does not reach the HTTP port")
		}
	}
	// Before an installation nothing of the release is there.
	spec := object[*batchv1.Job](t, must(t, installations["given secrets"]), "Job/prod-db-trireme-check").Spec.Template.Spec
	if spec.ServiceAccountName != "" || len(spec.Volumes) != 1 {
		t.Errorf("an installation: %q, %v", spec.ServiceAccountName, spec.Volumes)
	}
}

// TestCheckJobSeesCertificates: those that are there are looked at, and one of the user's that is missing keeps no pod
// from starting, so that the program tells of it.
func TestCheckJobSeesCertificates(t *testing.T) {
	for name, want := range map[string]string{
		"defaults": "peer-tls", "given secrets": "peer-tls client-tls", "cert-manager": "peer-tls", "no TLS": "", "clients' authorities": "peer-tls client-ca",
		"a bundle of them": "peer-tls client-tls client-ca"} {
		in := running(3)
		in["Secret/root"] = "{metadata: {name: root}, data: {pw: YQ==}}"
		r := upgraded(t, in, installations[name])
		spec := object[*batchv1.Job](t, r, "Job/prod-db-trireme-check").Spec.Template.Spec
		var got []string
		for _, v := range spec.Volumes[1:] {
			got = append(got, v.Name)
			if optional := v.Secret != nil && *v.Secret.Optional || v.ConfigMap != nil && *v.ConfigMap.Optional; !optional {
				t.Errorf("%s: the pod does not start without %s", name, v.Name)
			}
			if !slices.ContainsFunc(spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.Name == v.Name && strings.Contains(r.settings(t), m.MountPath+"/")
			}) {
				t.Errorf("%s: %s is not where the settings say", name, v.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, not %s", name, got, want)
		}
		if spec.ServiceAccountName != "prod-db-trireme" {
			t.Errorf("%s: account %q", name, spec.ServiceAccountName)
		}
	}
}

// TestCheckJobHasTheTokensOfNow: members are asked with the token that they demand, which is not that of the values if these change it.
func TestCheckJobHasTheTokensOfNow(t *testing.T) {
	const token = "monitoring: {token: {existingSecret: fresh, key: bearer}}"
	with := func(volumes string) seen {
		in := running(3)
		in["StatefulSet/prod-db-trireme"] = "{metadata: {name: prod-db-trireme}, spec: {replicas: 3, template: {spec: {volumes: [{name: tmp}" + volumes + "]}}}}"
		return in
	}
	const old = ", {name: http-token, secret: {secretName: old, items: [{key: k, path: token}]}}"
	const now, later = "/etc/trireme-http-token-now/token", "/etc/trireme-http-token/token"
	for _, c := range []struct {
		name    string
		r       *release
		files   string
		secrets map[string]string // by their paths, each with its key
	}{
		{"none", upgraded(t, with(""), "{}"), "", nil},
		{"another one", upgraded(t, with(old), token), now + "," + later, map[string]string{"/etc/trireme-http-token-now": "old k", "/etc/trireme-http-token": "fresh bearer"}},
		{"none any more", upgraded(t, with(old), "{}"), now, map[string]string{"/etc/trireme-http-token-now": "old k"}},
		{"a first one", upgraded(t, with(""), token), later, map[string]string{"/etc/trireme-http-token": "fresh bearer"}},
		{"their set is gone", upgraded(t, seen{}, token), now + "," + later, map[string]string{"/etc/trireme-http-token-now": "fresh bearer", "/etc/trireme-http-token": "fresh bearer"}},
		{"an installation", must(t, token), "", nil},
		{"an installation, always", must(t, "{upgrade: {check: {group: always}}, "+token+"}"), now, map[string]string{"/etc/trireme-http-token-now": "fresh bearer"}},
		{"the group is not asked", upgraded(t, with(old), "{upgrade: {check: {group: false}}, "+token+"}"), later, map[string]string{"/etc/trireme-http-token": "fresh bearer"}},
	} {
		spec := object[*batchv1.Job](t, c.r, "Job/prod-db-trireme-check").Spec.Template.Spec
		files := ""
		for _, e := range spec.Containers[0].Env {
			if e.Name == "TRIREME_HTTP_TOKEN_FILE" {
				files = e.Value
			}
		}
		if files != c.files {
			t.Errorf("%s: it asks with %q", c.name, files)
		}
		secrets := map[string]string{}
		for _, m := range spec.Containers[0].VolumeMounts {
			for _, v := range spec.Volumes {
				if v.Name == m.Name && strings.HasPrefix(m.Name, "http-token") {
					secrets[m.MountPath] = v.Secret.SecretName + " " + v.Secret.Items[0].Key
					if !*v.Secret.Optional || v.Secret.Items[0].Path != "token" {
						t.Errorf("%s: %+v", c.name, v.Secret)
					}
				}
			}
		}
		if !maps.Equal(secrets, c.secrets) {
			t.Errorf("%s: %v", c.name, secrets)
		}
	}
}

// TestCheckJobHasNewPeers: tools that render as for an installation each time have the members' new certificates compared too, which may be missing at first.
func TestCheckJobHasNewPeers(t *testing.T) {
	const given = "peerTLS: {source: secret, existingSecret: peers}"
	for values, want := range map[string]string{"{upgrade: {check: {group: always}}, " + given + "}": "/etc/trireme-peer-tls-new", given: "", "upgrade: {check: {group: always}}": ""} {
		r := must(t, values)
		if got := option(t, r, "peer-files"); got != want {
			t.Errorf("%s: %q", values, got)
		}
		if got := mounted(&object[*batchv1.Job](t, r, "Job/prod-db-trireme-check").Spec.Template.Spec, "/etc/trireme-peer-tls-new"); (got == "peers") != (want != "") {
			t.Errorf("%s: it has %q", values, got)
		}
	}
	in := running(3)
	if got := option(t, upgraded(t, in, given), "peer-files"); got != "" { // they are where the settings say
		t.Errorf("an upgrade: %q", got)
	}
}

// TestClaimsThatAreDeleted: nothing ends all pods of a group, or all that have the data, while claims go with them.
func TestClaimsThatAreDeleted(t *testing.T) {
	for _, c := range []struct {
		name, values string
		running      int
		gone         []int
		says         string
	}{
		{"it hibernates", "hibernate: true", 3, nil, ""},
		{"it hibernates, and one goes", "hibernate: true", 3, []int{2}, "somebody has deleted data-prod-db-trireme-2:"},
		{"it hibernates, and all go", "hibernate: true", 3, []int{0, 1, 2}, "data-prod-db-trireme-0, data-prod-db-trireme-1, data-prod-db-trireme-2"},
		{"fewer, and one that stays goes", "replicaCount: 1", 3, []int{0}, "data-prod-db-trireme-0"},
		{"fewer, and one of three that stay goes", "replicaCount: 3", 5, []int{0}, ""},
		{"fewer, and two of three that stay go", "replicaCount: 3", 5, []int{0, 2}, "data-prod-db-trireme-0, data-prod-db-trireme-2"},
		{"fewer, and one that leaves goes", "replicaCount: 1", 3, []int{2}, ""},
		{"a change, of three", "{}", 3, []int{0, 1, 2}, ""},
		{"a change, of one", "replicaCount: 1", 1, []int{0}, "with one member replicaCount=3 before"},
		{"more members", "replicaCount: 3", 1, []int{0}, ""},
		{"all the same", "{hibernate: true, upgrade: {check: {group: false}}}", 3, []int{0}, ""},
	} {
		in := running(c.running)
		for i := range c.running {
			in["StatefulSet/prod-db-trireme"] = fmt.Sprintf("{metadata: {name: prod-db-trireme}, spec: {replicas: %d}}", c.running)
			in[fmt.Sprintf("PersistentVolumeClaim/data-prod-db-trireme-%d", i)] = "{metadata: {name: c}}"
		}
		for _, i := range c.gone {
			in[fmt.Sprintf("PersistentVolumeClaim/data-prod-db-trireme-%d", i)] = "{metadata: {name: c, deletionTimestamp: '2026-01-01T00:00:00Z'}}"
		}
		_, err := renderIn(in, common.ReleaseOptions{Name: "prod-db", Namespace: "prod", IsUpgrade: true, Revision: 2}, c.values)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestGivenSecretsAreThere: before an upgrade Secrets of the user's own are looked for, of which the check's job has no file.
func TestGivenSecretsAreThere(t *testing.T) {
	const values = "{root: {existingSecret: own, key: pw}, discovery: {type: etcd, etcd: {endpoints: ['http://etcd:2379'], existingSecret: etcd}}, " +
		"tracing: {endpoint: 'collector:4317', headers: {existingSecret: collector, key: all}}}"
	whole := map[string]string{"Secret/own": "pw", "Secret/etcd": "username: YQ==, password", "Secret/collector": "all"}
	for _, c := range []struct {
		name, of, has, says string
	}{
		{"all are there", "", "", ""},
		{"no password of root", "Secret/own", "", "root.existingSecret: there is no Secret own"},
		{"no key", "Secret/own", "other", "root.existingSecret: the Secret own has no key pw"},
		{"no account of etcd", "Secret/etcd", "", "discovery.etcd.existingSecret: there is no Secret etcd"},
		{"no password of etcd", "Secret/etcd", "username", "the Secret etcd has no key password"},
		{"no headers", "Secret/collector", "", "tracing.headers.existingSecret: there is no Secret collector"},
	} {
		in := running(3)
		for key, data := range whole {
			if key == c.of {
				data = c.has
			}
			if data != "" {
				in[key] = "{metadata: {name: s}, data: {" + data + ": YQ==}}"
			}
		}
		as := common.ReleaseOptions{Name: "prod-db", Namespace: "prod", IsUpgrade: true, Revision: 2}
		if _, err := renderIn(in, as, values); c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.of != "" { // nobody can look
			if _, err := renderIn(nil, as, values); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// TestNotesOfRepair: where no majority was ready before an upgrade its notes tell that it does not get past the last pod by itself.
func TestNotesOfRepair(t *testing.T) {
	for _, c := range []struct {
		set, values string
		warns       string
	}{
		{"spec: {replicas: 3}", "{}", "WARNING: 0 of 3 members were ready"},
		{"spec: {replicas: 3}, status: {readyReplicas: 1}", "{}", "WARNING: 1 of 3 members were ready"},
		{"spec: {replicas: 3}, status: {readyReplicas: 2}", "{}", ""},
		{"spec: {replicas: 3}", "hibernate: true", ""},
		{"spec: {replicas: 1}", "replicaCount: 1", ""},
		{"spec: {replicas: 0}", "{}", ""},
	} {
		in := seen{"StatefulSet/prod-db-trireme": "{metadata: {name: prod-db-trireme}, " + c.set + "}"}
		files, err := filesIn(in, common.ReleaseOptions{Name: "prod-db", Namespace: "prod", IsUpgrade: true, Revision: 2}, c.values)
		if err != nil {
			t.Fatal(err)
		}
		notes := files["trireme/templates/NOTES.txt"]
		if !strings.Contains(notes, "Clients that write") || strings.Contains(notes, "members were ready") != (c.warns != "") || !strings.Contains(notes, c.warns) {
			t.Errorf("%s, %s:\n%s", c.set, c.values, notes)
		}
	}
}
