package chart

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	common "helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	security "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/triremedb/trireme/server/config"
)

const dir = "../../charts/trireme"

// release is a rendered chart.
type release struct {
	objects map[string]runtime.Object // by kind and name
	signed  map[string]bool           // Secrets that cert-manager makes
}

// kinds are what the chart makes, as Kubernetes defines them.
var kinds = map[string]func() runtime.Object{
	"rbac.authorization.k8s.io/v1/Role":        func() runtime.Object { return &rbacv1.Role{} },
	"rbac.authorization.k8s.io/v1/RoleBinding": func() runtime.Object { return &rbacv1.RoleBinding{} },
	"v1/ConfigMap":                  func() runtime.Object { return &corev1.ConfigMap{} },
	"v1/PersistentVolumeClaim":      func() runtime.Object { return &corev1.PersistentVolumeClaim{} },
	"v1/Pod":                        func() runtime.Object { return &corev1.Pod{} },
	"v1/Secret":                     func() runtime.Object { return &corev1.Secret{} },
	"v1/Service":                    func() runtime.Object { return &corev1.Service{} },
	"v1/ServiceAccount":             func() runtime.Object { return &corev1.ServiceAccount{} },
	"apps/v1/StatefulSet":           func() runtime.Object { return &appsv1.StatefulSet{} },
	"batch/v1/CronJob":              func() runtime.Object { return &batchv1.CronJob{} },
	"batch/v1/Job":                  func() runtime.Object { return &batchv1.Job{} },
	"policy/v1/PodDisruptionBudget": func() runtime.Object { return &policyv1.PodDisruptionBudget{} },
	"monitoring.coreos.com/v1/ServiceMonitor": func() runtime.Object { return &monitoringv1.ServiceMonitor{} },
	"monitoring.coreos.com/v1/PrometheusRule": func() runtime.Object { return &monitoringv1.PrometheusRule{} },
	"networking.k8s.io/v1/NetworkPolicy":      func() runtime.Object { return &networkingv1.NetworkPolicy{} },
}

// render renders the chart as `helm install prod-db --namespace prod` does.
func render(values string) (*release, error) { return renderAs("prod-db", values) }

func renderAs(name, values string) (*release, error) {
	return renderIn(nil, common.ReleaseOptions{Name: name, Namespace: "prod", IsInstall: true}, values)
}

// loaded is the chart.
var loaded = sync.OnceValues(func() (*v2.Chart, error) { return loader.Load(dir) })

// kubeVersion is the version for which the chart is rendered, as Helm finds it in a cluster: that whose types and checks this module has.
const kubeVersion = "v1.36.3"

func capabilities(version string) *common.Capabilities {
	c := common.DefaultCapabilities.Copy()
	c.KubeVersion.Version = version
	return c
}

// filesIn are the files that the chart's templates make there.
func filesIn(in engine.ClientProvider, as common.ReleaseOptions, values string) (map[string]string, error) {
	var given map[string]any
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		return nil, err
	}
	c, err := loaded()
	if err != nil {
		return nil, err
	}
	return rendered(c, in, capabilities(kubeVersion), as, given)
}

func rendered(c *v2.Chart, in engine.ClientProvider, caps *common.Capabilities, as common.ReleaseOptions, given map[string]any) (map[string]string, error) {
	all, err := util.ToRenderValues(c, given, as, caps)
	if err != nil {
		return nil, err
	}
	if in != nil {
		return engine.RenderWithClientProvider(c, all, in)
	}
	return engine.Engine{}.Render(c, all)
}

// renderIn renders the chart where a cluster has objects already; nil: nobody can look at one.
func renderIn(in engine.ClientProvider, as common.ReleaseOptions, values string) (*release, error) {
	files, err := filesIn(in, as, values)
	if err != nil {
		return nil, err
	}
	return decoded(files)
}

// decoded is what files of manifests make.
func decoded(files map[string]string) (*release, error) {
	r := &release{objects: map[string]runtime.Object{}, signed: map[string]bool{}}
	for name, text := range files {
		if strings.HasSuffix(name, ".txt") || strings.HasPrefix(filepath.Base(name), "_") {
			continue
		}
		for document := range strings.SplitSeq(text, "\n---\n") {
			if err := r.add(document); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
		}
	}
	return r, nil
}

// add decodes a document. Unknown fields are errors.
func (r *release) add(document string) error {
	var head struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			SecretName string
			IsCA       bool
			PrivateKey struct{ RotationPolicy string }
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(document), &head); err != nil {
		return err
	}
	if head.Kind == "" {
		return nil // nothing but comments
	}
	valid := validation.IsDNS1123Label
	if head.Annotations["helm.sh/hook"] != "" { // see TestHooksHaveNamesOfTheirOwn
		valid = validation.IsDNS1123Subdomain
	}
	if bad := valid(head.Name); len(bad) > 0 {
		return fmt.Errorf("the name %q: %v", head.Name, bad)
	}
	var all any
	if err := yaml.Unmarshal([]byte(document), &all); err != nil {
		return err
	}
	if err := legalLabels(all); err != nil {
		return err
	}
	key := head.Kind + "/" + head.Name
	if _, twice := r.objects[key]; twice {
		return fmt.Errorf("%s comes twice", key)
	}
	made := kinds[head.APIVersion+"/"+head.Kind]
	if made == nil {
		if !strings.HasPrefix(head.APIVersion, "cert-manager.io/") {
			return fmt.Errorf("unexpected kind %s of %s", head.Kind, head.APIVersion)
		}
		if head.Kind == "Certificate" {
			r.signed[head.Spec.SecretName] = true
		}
		if head.Spec.IsCA && head.Spec.PrivateKey.RotationPolicy != "Never" { // cert-manager's default is another one
			return fmt.Errorf("%s: the authority may get another key, which members would not know all at once", key)
		}
		return nil
	}
	o := made()
	r.objects[key] = o
	if err := yaml.UnmarshalStrict([]byte(document), o); err != nil {
		return err
	}
	return accepted(o)
}

// legalLabels demands that labels, and what selects by them, are such as Kubernetes takes, wherever they are in an object.
func legalLabels(in any) error {
	switch in := in.(type) {
	case []any:
		for _, v := range in {
			if err := legalLabels(v); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, v := range in {
			if err := legalLabels(v); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			labels, ok := v.(map[string]any)
			if !ok || key != "labels" && key != "matchLabels" {
				continue
			}
			for k, v := range labels {
				text, ok := v.(string)
				if bad := append(validation.IsQualifiedName(k), validation.IsValidLabelValue(text)...); len(bad) > 0 || !ok {
					return fmt.Errorf("the label %s: %v is no label: %v", k, v, bad)
				}
			}
		}
	}
	return nil
}

func must(t *testing.T, values string) *release {
	t.Helper()
	r, err := render(values)
	if err != nil {
		t.Fatalf("with %s: %v", values, err)
	}
	return r
}

// object finds an object; the release must have it.
func object[T runtime.Object](t *testing.T, r *release, key string) T {
	t.Helper()
	o, ok := r.objects[key].(T)
	if !ok {
		t.Fatalf("there is no %s", key)
	}
	return o
}

// installations are values with which the chart is rendered.
var installations = map[string]string{
	"defaults":         "{}",
	"one member":       "replicaCount: 1",
	"read replicas":    "{replicaCount: 5, readReplicas: {count: 2, resources: {limits: {memory: 1Gi}}}}",
	"cert-manager-csi": "{peerTLS: {source: certManagerCSI}}",
	"cert-manager":     "{peerTLS: {source: certManager}, clientTLS: {source: certManager, issuerRef: {name: ca, kind: ClusterIssuer}, dnsNames: [db.example.com], required: true}}",
	"given secrets":    "{root: {existingSecret: root, key: pw}, peerTLS: {source: secret, existingSecret: peers}, clientTLS: {source: secret, existingSecret: clients}}",
	"no TLS":           "peerTLS: {source: none}",
	"etcd":             "discovery: {type: etcd, etcd: {endpoints: ['http://etcd:2379'], existingSecret: etcd}}",
	"etcd by TLS":      "discovery: {type: etcd, etcd: {endpoints: ['https://etcd:2379'], tls: {existingSecret: etcd-clients}}}",
	"etcd's CA alone":  "discovery: {type: etcd, etcd: {endpoints: ['https://etcd:2379'], tls: {existingSecret: etcd-ca, clientCertificate: false}}}",
	"hosts":            "peerTLS: {source: secret, existingSecret: peers, identity: host}",
	"a token":          "{readReplicas: {count: 1}, monitoring: {token: {existingSecret: scrape, key: bearer}, serviceMonitor: {enabled: true}}}",
	"settings":         "settings: {max_connections: 500, binlog_row_image: full, http_pprof: true, sql_mode: ANSI}",
	"load balancers":   "{service: {type: LoadBalancer, annotations: {a: b}, loadBalancerSourceRanges: [10.0.0.0/8, 'fd00::/8']}, readService: {type: NodePort, nodePort: 30306}}",
	"nobody leaves":    "{leaveWhenScaled: false, readReplicas: {count: 1}}",
	"little of it":     "{readService: {enabled: false}, networkPolicy: {enabled: false}, podDisruptionBudget: {enabled: false}, leaveWhenScaled: false, serviceAccount: {name: own}}",
	"who may connect":  "networkPolicy: {clients: [{podSelector: {matchLabels: {app: shop}}}], monitoring: [{namespaceSelector: {}}]}",
	"watched": "monitoring: {serviceMonitor: {enabled: true, labels: {release: prometheus}, relabelings: [{action: labeldrop, regex: pod}]}, " +
		"rules: {enabled: true, labels: {release: prometheus}, alertLabels: {team: db}, without: [TriremeDeadlocks, TriremeNotScraped]}, dashboards: {enabled: true, annotations: {grafana_folder: Databases}, namespace: grafana}}",
	"clients' authorities":   "{clientTLS: {clientCA: {existingSecret: authorities, key: root.pem, crlKey: revoked.pem}, required: true}}",
	"a bundle of them":       "{clientTLS: {source: secret, existingSecret: clients, clientCA: {existingConfigMap: bundle}}}",
	"watched by rules alone": "monitoring: {rules: {enabled: true}}",
	"dashboards alone":       "monitoring: {dashboards: {enabled: true}}",
	"accounts":               accounts,
	"traces":                 "tracing: {endpoint: 'collector.observe:4317'}",
	"traces by TLS": "{readReplicas: {count: 1}, tracing: {endpoint: 'https://collector:4317', sampleRatio: 0, maxPerSecond: 1000000, statementText: 'OFF', " +
		"headers: {existingSecret: collector, key: all}, ca: {existingSecret: authority, key: root.pem}}}",
	"backups":                              "backup: {enabled: true}",
	"large numbers":                        "{settings: {max_binlog_size: 268435456, max_connections: 100000}, resources: {limits: {memory: 2147483648}}}",
	"unlimited memory":                     "resources: {limits: null}",
	"nothing checked":                      "upgrade: {check: {enabled: false}}",
	"values from before there were checks": "{upgrade: null}",
	"backups elsewhere":                    backupsElsewhere,
	"restored":                             restoring,
	"placed": "{nodeSelector: {disk: ssd}, tolerations: [{key: db, operator: Exists}], priorityClassName: high, imagePullSecrets: [{name: pull}], podLabels: {team: db}, podAnnotations: {x: z}, " +
		"affinity: {nodeAffinity: {}}, topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}], persistence: {storageClass: fast, annotations: {a: b}}}",
}

func TestLint(t *testing.T) {
	for name, values := range installations {
		var given map[string]any
		if err := yaml.Unmarshal([]byte(values), &given); err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.RunAll(dir, given, "prod").Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// What is rendered is made of what Kubernetes knows, and its parts fit together.
func TestManifests(t *testing.T) {
	for name, values := range installations {
		t.Run(name, func(t *testing.T) {
			r := must(t, values)
			pods := r.pods()
			if len(pods) == 0 {
				t.Fatal("there are no pods")
			}
			for _, p := range pods {
				checkRestricted(t, p)
				r.checkVolumes(t, p)
			}
			r.checkServices(t, pods)
			r.checkSettings(t)
			r.checkRights(t)
		})
	}
}

// pods are the pods that the release makes, named as their sets.
func (r *release) pods() (pods []*corev1.Pod) {
	for _, o := range r.objects {
		switch o := o.(type) {
		case *corev1.Pod:
			pods = append(pods, o)
		case *appsv1.StatefulSet:
			p := &corev1.Pod{ObjectMeta: o.Spec.Template.ObjectMeta, Spec: o.Spec.Template.Spec}
			p.Name = o.Name
			for _, c := range o.Spec.VolumeClaimTemplates {
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: c.Name, VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}}) // made with the pod
			}
			pods = append(pods, p)
		case *batchv1.CronJob:
			t := o.Spec.JobTemplate.Spec.Template
			p := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
			p.Name = o.Name
			pods = append(pods, p)
		case *batchv1.Job:
			t := o.Spec.Template
			p := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
			p.Name = o.Name
			pods = append(pods, p)
		}
	}
	return pods
}

// checkRestricted demands that a pod may run where the restricted level is enforced.
func checkRestricted(t *testing.T, p *corev1.Pod) {
	t.Helper()
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := security.LevelVersion{Level: security.LevelRestricted, Version: security.LatestVersion()}
	for _, result := range e.EvaluatePod(level, &p.ObjectMeta, &p.Spec) {
		if !result.Allowed {
			t.Errorf("pod %s: %s: %s", p.Name, result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
}

// checkVolumes demands that what is mounted is there, and that the release makes what is not
// given.
func (r *release) checkVolumes(t *testing.T, p *corev1.Pod) {
	t.Helper()
	for _, c := range append(slices.Clone(p.Spec.InitContainers), p.Spec.Containers...) {
		for _, m := range c.VolumeMounts {
			if !slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
				t.Errorf("pod %s: there is no volume %s", p.Name, m.Name)
			}
		}
	}
	has := func(kind, name string) {
		if (kind == "ConfigMap" && name != "bundle" || strings.HasPrefix(name, "prod-db")) && r.objects[kind+"/"+name] == nil && !(kind == "Secret" && r.signed[name]) {
			t.Errorf("pod %s: there is no %s %s", p.Name, kind, name)
		}
	}
	for _, v := range p.Spec.Volumes {
		switch {
		case v.ConfigMap != nil:
			has("ConfigMap", v.ConfigMap.Name)
		case v.Secret != nil:
			has("Secret", v.Secret.SecretName)
		case v.DownwardAPI != nil:
			for _, i := range v.DownwardAPI.Items {
				if key := annotationKey(i.FieldRef.FieldPath); p.Annotations[key] == "" {
					t.Errorf("pod %s: there is no annotation %q", p.Name, key)
				}
			}
		case v.PersistentVolumeClaim != nil:
			has("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
		case v.Projected != nil:
			for _, from := range v.Projected.Sources {
				if from.ConfigMap != nil {
					has("ConfigMap", from.ConfigMap.Name)
				}
				if from.Secret != nil {
					has("Secret", from.Secret.Name)
				}
			}
		}
	}
}

// annotationKey is the annotation that a path of a field means.
func annotationKey(path string) string {
	key, _ := strings.CutPrefix(path, "metadata.annotations['")
	return strings.TrimSuffix(key, "']")
}

// settingsOf is the file of settings that a pod mounts.
func settingsOf(t *testing.T, p *corev1.PodTemplateSpec) string {
	t.Helper()
	c := p.Spec.Containers[0]
	for _, m := range c.VolumeMounts {
		i := slices.IndexFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name && v.DownwardAPI != nil })
		if m.MountPath == "/etc/trireme" && i >= 0 && p.Spec.Volumes[i].DownwardAPI.Items[0].Path == "trireme.cnf" {
			return p.Annotations[annotationKey(p.Spec.Volumes[i].DownwardAPI.Items[0].FieldRef.FieldPath)]
		}
	}
	t.Fatalf("a pod of %v mounts no settings", p.Labels)
	return ""
}

// settings are those of the members.
func (r *release) settings(t *testing.T) string {
	t.Helper()
	return settingsOf(t, &object[*appsv1.StatefulSet](t, r, "StatefulSet/prod-db-trireme").Spec.Template)
}

// checkServices demands that every Service leads to ports of pods, and to no job's or test's, which have none.
func (r *release) checkServices(t *testing.T, pods []*corev1.Pod) {
	t.Helper()
	for key, o := range r.objects {
		s, ok := o.(*corev1.Service)
		if !ok {
			continue
		}
		found := 0
		for _, p := range pods {
			if !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.Labels)) {
				continue
			}
			found++
			for _, port := range s.Spec.Ports {
				if !slices.ContainsFunc(p.Spec.Containers[0].Ports, func(c corev1.ContainerPort) bool { return c.Name == port.TargetPort.StrVal }) {
					t.Errorf("%s: pod %s has no port %s", key, p.Name, port.TargetPort.StrVal)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s leads to no pod", key)
		}
	}
}

// checkSettings demands that the server takes the settings, by file and environment.
func (r *release) checkSettings(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trireme.cnf")
	root := fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/\n")}, "sys/fs/cgroup/memory.max": {Data: []byte("2147483648\n")}}
	for key, o := range r.objects {
		set, ok := o.(*appsv1.StatefulSet)
		if !ok {
			continue
		}
		if err := os.WriteFile(file, []byte(settingsOf(t, &set.Spec.Template)), 0o600); err != nil {
			t.Fatal(err)
		}
		env := []string{"TRIREME_DATADIR=/var/lib/trireme/data"} // of the image
		for _, e := range set.Spec.Template.Spec.Containers[0].Env {
			if from := e.ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
				e.Value = object[*corev1.ConfigMap](t, r, "ConfigMap/"+from.ConfigMapKeyRef.Name).Data[from.ConfigMapKeyRef.Key]
			}
			env = append(env, e.Name+"="+strings.ReplaceAll(e.Value, "$(POD_NAME)", set.Name+"-0"))
		}
		cfg, err := config.Load(config.Sources{Env: env, Args: []string{"--config=" + file}, Root: root,
			Variable: func(name, _ string) error {
				if name != "sql_mode" {
					return fmt.Errorf("Unknown system variable %s", name)
				}
				return nil
			}})
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if got, want := cfg.Int("innodb_buffer_pool_size"), int64(1<<30); got != want {
			t.Errorf("%s: half of 2 GiB of memory is %d", key, got)
		}
		if got, want := cfg.String("peer_address"), set.Name+"-0.prod-db-trireme-peers.prod.svc.cluster.local:17100"; got != want {
			t.Errorf("%s: its address is %s, not %s", key, got, want)
		}
		if got, want := cfg.Int("discovery_expect"), int64(*object[*appsv1.StatefulSet](t, r, "StatefulSet/prod-db-trireme").Spec.Replicas); got != want {
			t.Errorf("%s: %d found the group, not %d", key, got, want)
		}
		if cfg.Bool("replica") != strings.HasSuffix(set.Name, "-read") {
			t.Errorf("%s: replica is %v", key, cfg.Bool("replica"))
		}
	}
}

// checkRights demands that pods have a token, without which they would found groups beside claims, and that its rights are to look at
// claims of members; and, where members leave that are scaled away, to look at their sets, to delete claims, and to tell events.
func (r *release) checkRights(t *testing.T) {
	t.Helper()
	role := object[*rbacv1.Role](t, r, "Role/prod-db-trireme")
	for key, o := range r.objects {
		set, ok := o.(*appsv1.StatefulSet)
		if !ok {
			continue
		}
		spec := set.Spec.Template.Spec
		if spec.AutomountServiceAccountToken == nil || !*spec.AutomountServiceAccountToken {
			t.Errorf("%s: its pods have no token: %v", key, spec.AutomountServiceAccountToken)
		}
		env := map[string]string{}
		for _, e := range spec.Containers[0].Env {
			env[e.Name] = e.Value
		}
		if got := env["TRIREME_KUBERNETES_STATEFULSETS"]; got != "prod-db-trireme,prod-db-trireme-read" {
			t.Errorf("%s: its pods look at claims of %q", key, got)
		}
		if set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
			t.Errorf("%s: Kubernetes deletes claims of members that have not left", key)
		}
		for _, rule := range role.Rules {
			what := strings.Join(append(rule.Verbs, rule.Resources...), " ")
			names := map[string]string{"get persistentvolumeclaims": "data-" + set.Name + "-6"}
			if env["TRIREME_KUBERNETES_STATEFULSET"] != "" {
				names = map[string]string{"get statefulsets": set.Name, "get delete persistentvolumeclaims": "data-" + set.Name + "-6", "create events": ""}
			}
			if len(role.Rules) != len(names) {
				t.Errorf("%s: its pods may %v", key, role.Rules)
			}
			named, ok := names[what]
			if !ok || named != "" && !slices.Contains(rule.ResourceNames, named) {
				t.Errorf("%s: its pods may %s %.40q", key, what, rule.ResourceNames)
			}
			for _, n := range rule.ResourceNames {
				if !strings.HasPrefix(strings.TrimPrefix(n, "data-"), "prod-db-trireme") {
					t.Errorf("%s: its pods may %s %s", key, what, n)
				}
			}
		}
		binding := object[*rbacv1.RoleBinding](t, r, "RoleBinding/prod-db-trireme")
		if len(binding.Subjects) != 1 || binding.Subjects[0].Name != spec.ServiceAccountName || binding.RoleRef.Name != role.Name {
			t.Errorf("the right is given to %v", binding.Subjects)
		}
	}
}

// The number of members starts no pod anew; settings do.
func TestWhatStartsPodsAnew(t *testing.T) {
	template := func(values string) string {
		set := object[*appsv1.StatefulSet](t, must(t, values), "StatefulSet/prod-db-trireme")
		b, err := yaml.Marshal(set.Spec.Template)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := template("{}")
	if template("replicaCount: 5") != before || template("readReplicas: {count: 2}") != before {
		t.Error("pods start anew when others are added")
	}
	if template("settings: {max_connections: 7}") == before {
		t.Error("pods do not start anew when a setting changes")
	}
}

// The authorities of clients are mounted as a directory, so that their Secret may change, and the server is told where.
func TestClientCA(t *testing.T) {
	if strings.Contains(must(t, "{}").settings(t), "ssl_ca") {
		t.Error("clients are asked for certificates of nobody")
	}
	for name, want := range map[string]map[string]string{"clients' authorities": {"root.pem": "ca.crt", "revoked.pem": "ca.crl"}, "a bundle of them": {"ca.crt": "ca.crt"}} {
		r := must(t, installations[name])
		conf := r.settings(t)
		for _, setting := range []string{"ssl_ca = /etc/trireme-client-ca/ca.crt\n", "ssl_crl = /etc/trireme-client-ca/ca.crl\n"} {
			if has, wanted := strings.Contains(conf+"\n", setting), strings.Contains(setting, "ssl_ca") || len(want) > 1; has != wanted {
				t.Errorf("%s: %q is there: %v", name, setting, has)
			}
		}
		spec := object[*appsv1.StatefulSet](t, r, "StatefulSet/prod-db-trireme").Spec.Template.Spec
		i := slices.IndexFunc(spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "client-ca" })
		j := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "client-ca" })
		if i < 0 || j < 0 {
			t.Fatalf("%s: nothing is mounted", name)
		}
		if m := spec.Containers[0].VolumeMounts[i]; m.MountPath != "/etc/trireme-client-ca" || m.SubPath != "" || !m.ReadOnly {
			t.Errorf("%s: %v", name, m)
		}
		var items []corev1.KeyToPath
		if v := spec.Volumes[j]; v.Secret != nil {
			items = v.Secret.Items
		} else {
			items = v.ConfigMap.Items
		}
		got := map[string]string{}
		for _, k := range items {
			got[k.Key] = k.Path
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTracing: pods are told where spans go, and by what they prove who they are.
func TestTracing(t *testing.T) {
	const all = "StatefulSet/prod-db-trireme"
	cnf := func(r *release) string { return r.settings(t) }
	env := func(r *release) map[string]corev1.EnvVar {
		list := map[string]corev1.EnvVar{}
		for _, e := range object[*appsv1.StatefulSet](t, r, all).Spec.Template.Spec.Containers[0].Env {
			list[e.Name] = e
		}
		return list
	}
	r := must(t, "{}")
	if _, has := env(r)["OTEL_RESOURCE_ATTRIBUTES"]; has || strings.Contains(cnf(r), "trace_") {
		t.Error("something is traced by default")
	}
	must(t, "{tracing: null}") // values of a release from before there were traces
	r = must(t, installations["traces"])
	for _, line := range []string{"trace_endpoint = collector.observe:4317", "trace_sample_ratio = 0.01", "trace_max_per_second = 100", "trace_statement_text = digest"} {
		if !strings.Contains(cnf(r)+"\n", line+"\n") {
			t.Errorf("%s is missing in %s", line, cnf(r))
		}
	}
	e := env(r)
	if e["OTEL_RESOURCE_ATTRIBUTES"].Value != "k8s.namespace.name=prod,k8s.pod.name=$(POD_NAME),k8s.node.name=$(POD_NODE_NAME)" ||
		e["OTEL_EXPORTER_OTLP_TRACES_HEADERS"].ValueFrom != nil || e["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"].Value != "" {
		t.Errorf("%v", e)
	}
	r = must(t, installations["traces by TLS"])
	if !strings.Contains(cnf(r), "trace_endpoint = https://collector:4317\ntrace_sample_ratio = 0\n") || !strings.Contains(cnf(r), "trace_statement_text = OFF") {
		t.Error(cnf(r))
	}
	e = env(r)
	if from := e["OTEL_EXPORTER_OTLP_TRACES_HEADERS"].ValueFrom; from == nil || from.SecretKeyRef.Name != "collector" || from.SecretKeyRef.Key != "all" {
		t.Errorf("%v", e)
	}
	spec := object[*appsv1.StatefulSet](t, r, all).Spec.Template.Spec
	i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "trace-ca" })
	if i < 0 || spec.Volumes[i].Secret.SecretName != "authority" || spec.Volumes[i].Secret.Items[0].Key != "root.pem" ||
		e["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"].Value != "/etc/trireme-trace-ca/"+spec.Volumes[i].Secret.Items[0].Path {
		t.Errorf("%v", spec.Volumes)
	}
}

// TestNodesAreAskedByName: a certificate of a member is for its name, so that nodes ask each other by names. The headless Service has
// records with them under the name of its port.
func TestNodesAreAskedByName(t *testing.T) {
	for _, values := range []string{"{}", "peerTLS: {source: certManager}", "peerTLS: {source: certManagerCSI}", "peerTLS: {source: none}"} {
		c := must(t, values)
		if conf := c.settings(t); !strings.Contains(conf, "discovery_dns_members = _peers._tcp.prod-db-trireme-peers.prod.svc.") || !strings.Contains(conf, "discovery_dns_pattern = ") {
			t.Errorf("%s: %s", values, conf)
		}
	}
}

// Values that cannot be meant are refused, and the answer names them.
func TestBadValues(t *testing.T) {
	for _, c := range []struct{ values, says string }{
		{"replicaCount: 2", "replicaCount"},
		{"image: {digest: latest}", "digest"},
		{"image: {digest: 'sha256:0123'}", "digest"},
		{"nameOverride: a_", "nameOverride"},
		{"replicaCount: three", "replicaCount"},
		{"replicacount: 3", "replicacount"},
		{"readReplicas: {count: -1}", "count"},
		{"bufferPool: half", "bufferPool"},
		{"bufferPool: 100%", "bufferPool"},
		{"settings: {datadir: /elsewhere}", "datadir"},
		{"settings: {Max-Connections: 5}", "Max-Connections"},
		{"settings: {max_connections: [1]}", "max_connections"},
		{"settings: {users_dir: /elsewhere}", "users_dir"},
		{"settings: {trace_endpoint: 'a:1'}", "trace_endpoint"},
		{"tracing: {endpoint: collector}", "endpoint"},
		{"tracing: {endpoint: 'https://collector:4317/v1/traces'}", "endpoint"},
		{"tracing: {sampleRatio: 2}", "sampleRatio"},
		{"tracing: {statementText: full}", "statementText"},
		{"users: [{name: a}]", "existingSecret"},
		{"users: [{name: a_b, existingSecret: s}]", "name"},
		{"users: [{name: trireme-backup, existingSecret: s}]", "name"},
		{"users: [{name: a, existingSecret: s, password: p}]", "password"},
		{"users: [{name: a, existingSecret: s, grants: [SELECT]}]", "grants"},
		{"users: [{name: a, existingSecret: s, grants: ['SELECT ON a.*; DROP USER root']}]", "grants"},
		{"users: [{name: a, existingSecret: s, plugin: sha256_password}]", "plugin"},
		{"users: [{name: a, existingSecret: s}, {name: a, user: b, existingSecret: s}]", "users: a, the account b@%, comes twice"},
		{"users: [{name: a, existingSecret: s}, {name: b, user: a, host: '%', existingSecret: s}]", "users: b, the account a@%, comes twice"},
		{"{users: [{name: backup, existingSecret: s}], backup: {enabled: true}}", "the account backup@%, comes twice"},
		{"backup: {enabled: true, schedule: nightly}", "schedule"},
		{"backup: {enabled: true, keep: -1}", "keep"},
		{"backup: {enabled: true, retention: 5}", "retention"},
		{"backup: {enabled: true, rateMiB: fast}", "rateMiB"},
		{"backup: {enabled: true, persistence: {size: lots}}", "size"},
		{"backup: {enabled: true, persistence: {accessModes: [ReadOnlyMany]}}", "accessModes"},
		{"backup: {enabled: true, deadlineSeconds: 1}", "deadlineSeconds"},
		{"persistence: {accessModes: [ReadWriteMany]}", "accessModes"},
		{"persistence: {size: lots}", "size"},
		{"peerTLS: {source: maybe}", "source"},
		{"peerTLS: {source: secret}", "peerTLS.existingSecret has to name"},
		{"clientTLS: {source: secret}", "clientTLS.existingSecret has to name"},
		{"clientTLS: {source: certManager}", "clientTLS.issuerRef has to name"},
		{"clientTLS: {clientCA: {existingSecret: a, existingConfigMap: b}}", "clientTLS.clientCA: existingSecret or existingConfigMap"},
		{"clientTLS: {clientCA: {crlKey: a}}", "clientTLS.clientCA: crlKey"},
		{"clientTLS: {clientCA: {existingSecret: a, key: ''}}", "key"},
		{"settings: {ssl_ca: /elsewhere}", "ssl_ca"},
		{"discovery: {type: consul}", "type"},
		{"discovery: {type: etcd}", "discovery.etcd.endpoints has to list"},
		{"monitoring: {serviceMonitor: {enabled: true, interval: often}}", "interval"},
		{"monitoring: {rules: {without: [Other]}}", "without"},
		{"monitoring: {alerts: {enabled: true}}", "alerts"},
		{"upgrade: {check: {group: sometimes}}", "group"},
		{"upgrade: {check: {timeoutSeconds: 1}}", "timeoutSeconds"},
		{"upgrade: {enabled: false}", "enabled"},
		{"podAnnotations: {trireme.io/settings: port=1}", "trireme.io/settings"},
		{"extraEnv: [{name: TRIREME_PORT, value: '1'}]", "extraEnv"},
		{"extraEnv: [{value: a}]", "extraEnv"},
		{"extraVolumes: [{name: data, emptyDir: {}}]", "extraVolumes"},
		{"readReplicas: {extraVolumeMounts: [{name: a}]}", "extraVolumeMounts"},
		{"sidecars: [{name: trireme}]", "sidecars"},
		{"backup: {sidecars: [{name: a}]}", "sidecars"},
		{"upgrade: {check: {sidecars: []}}", "sidecars"},
		{"readReplicas: {podAnnotations: {trireme.io/settings: port=1}}", "trireme.io/settings"},
		{"readReplicas: {podDisruptionBudget: {maxUnavailable: 0}}", "maxUnavailable"},
		{"networkPolicy: {egress: {apiServerPorts: []}}", "apiServerPorts"},
		{"hibernate: 1", "hibernate"},
		{"service: {port: 70000}", "port"},
		{"service: {type: ExternalName}", "type"},
		{"service: {loadBalancerSourceRanges: [10.0.0.0/8]}", "service.loadBalancerSourceRanges: they are of a Service of type LoadBalancer"},
		{"{service: {type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.1]}}", "loadBalancerSourceRanges"},
		{"service: {http: sometimes}", "http"},
	} {
		if _, err := render(c.values); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.values, err)
		}
	}
}

// TestCertificateOfEachPod: the certificate's name is the pod's own among the members, its files are for the group that the pod runs with,
// however large its number, and members demand the name of each other.
func TestCertificateOfEachPod(t *testing.T) {
	for group, want := range map[string]string{"{}": "65532", "{fsGroup: 1000660000}": "1000660000", "{fsGroup: null}": ""} {
		r := must(t, "{peerTLS: {source: certManagerCSI}, podSecurityContext: "+group+"}")
		spec := object[*appsv1.StatefulSet](t, r, "StatefulSet/prod-db-trireme").Spec.Template.Spec
		i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "peer-tls" })
		if i < 0 || spec.Volumes[i].CSI == nil || spec.Volumes[i].CSI.Driver != "csi.cert-manager.io" {
			t.Fatalf("%+v", spec.Volumes)
		}
		a := spec.Volumes[i].CSI.VolumeAttributes
		if name := a["csi.cert-manager.io/dns-names"]; name != "${POD_NAME}.prod-db-trireme-peers.prod.svc.cluster.local" {
			t.Errorf("it is for %s", name)
		}
		if a["csi.cert-manager.io/issuer-name"] != "prod-db-trireme-peers" || a["csi.cert-manager.io/fs-group"] != want {
			t.Errorf("with %s: %v", group, a)
		}
		if conf := r.settings(t); !strings.Contains(conf, "peer_tls_identity = host") {
			t.Error("any certificate of the authority will do")
		}
		for key := range r.objects {
			if strings.HasSuffix(key, "-peer-tls") || key == "Certificate/prod-db-trireme-peers" {
				t.Errorf("all pods have the same one too: %s", key)
			}
		}
	}
}
