package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// Nothing that needs the operator's definitions is made unless it is asked for.
func TestMonitoringIsOff(t *testing.T) {
	for key := range must(t, "{}").objects {
		if strings.HasPrefix(key, "ServiceMonitor/") || strings.HasPrefix(key, "PrometheusRule/") || strings.Contains(key, "dashboard") {
			t.Errorf("%s is made", key)
		}
	}
}

// Prometheus finds each node once, by one Service that has those that are not ready, too.
func TestServiceMonitor(t *testing.T) {
	r := must(t, installations["watched"])
	m := object[*monitoringv1.ServiceMonitor](t, r, "ServiceMonitor/prod-db-trireme")
	if m.Labels["release"] != "prometheus" || m.Spec.JobLabel != "app.kubernetes.io/instance" || !slices.Equal(m.Spec.NamespaceSelector.MatchNames, []string{"prod"}) {
		t.Errorf("%+v", m)
	}
	selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for key, o := range r.objects {
		s, ok := o.(*corev1.Service)
		if !ok || !selector.Matches(labels.Set(s.Labels)) {
			continue
		}
		found++
		if s.Spec.ClusterIP != "None" || !s.Spec.PublishNotReadyAddresses {
			t.Errorf("%s hides nodes", key)
		}
		for _, e := range m.Spec.Endpoints {
			if !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == e.Port }) {
				t.Errorf("%s has no port %s", key, e.Port)
			}
		}
	}
	if found != 1 || len(m.Spec.Endpoints) != 1 {
		t.Errorf("%d Services and %d endpoints", found, len(m.Spec.Endpoints))
	}
}

// The rules are those of the file, but what is left out.
func TestPrometheusRule(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(dir, "monitoring/rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file monitoringv1.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	shown := func(v any) string {
		b, err := json.MarshalIndent(v, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	whole := object[*monitoringv1.PrometheusRule](t, must(t, installations["watched by rules alone"]), "PrometheusRule/prod-db-trireme")
	if got, want := shown(whole.Spec), shown(file); got != want {
		t.Errorf("the rules are %s\nand the file's %s", got, want)
	}
	for i := range file.Groups {
		g := &file.Groups[i]
		g.Rules = slices.DeleteFunc(g.Rules, func(r monitoringv1.Rule) bool { return r.Alert == "TriremeDeadlocks" || r.Alert == "TriremeNotScraped" })
		for _, r := range g.Rules {
			if r.Alert != "" {
				r.Labels["team"] = "db"
			}
		}
	}
	part := object[*monitoringv1.PrometheusRule](t, must(t, installations["watched"]), "PrometheusRule/prod-db-trireme")
	if got, want := shown(part.Spec), shown(file); got != want || part.Labels["release"] != "prometheus" {
		t.Errorf("the rules are %s\nnot %s", got, want)
	}
}

// Each dashboard is a ConfigMap that Grafana's sidecar finds, small enough for one.
func TestDashboards(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(dir, "monitoring/*.json"))
	if err != nil || len(names) == 0 {
		t.Fatal("there are no dashboards: ", err)
	}
	here, elsewhere := must(t, installations["dashboards alone"]), must(t, installations["watched"])
	for _, name := range names {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Base(name)
		key := "ConfigMap/prod-db-trireme-dashboard-" + strings.TrimSuffix(base, ".json")
		c := object[*corev1.ConfigMap](t, here, key)
		if got := c.Data["trireme-"+base]; strings.TrimSpace(got) != strings.TrimSpace(string(want)) || c.Labels["grafana_dashboard"] != "1" || c.Namespace != "prod" || len(want) > 512<<10 {
			t.Errorf("%s: %v, %d bytes", key, c.ObjectMeta, len(got))
		}
		if c = object[*corev1.ConfigMap](t, elsewhere, key); c.Namespace != "grafana" || c.Annotations["grafana_folder"] != "Databases" {
			t.Errorf("%s: %v", key, c.ObjectMeta)
		}
	}
}
