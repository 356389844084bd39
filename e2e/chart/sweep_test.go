package chart

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	common "helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// swept are values that make the chart use all others; Secrets are given, since making certificates takes longer than all else.
const swept = "root: {existingSecret: a}, peerTLS: {source: secret, existingSecret: b}, clientTLS: {source: certManager, issuerRef: {name: ca}, clientCA: {existingSecret: c, crlKey: d}}, " +
	"users: [{name: shop, existingSecret: s}], service: {type: LoadBalancer}, readService: {type: NodePort}, " +
	"discovery: {type: etcd, etcd: {endpoints: ['https://etcd:2379'], tls: {existingSecret: e}}}, tracing: {endpoint: 'collector:4317', headers: {existingSecret: h}, ca: {existingSecret: i}}, " +
	"backup: {enabled: true, account: {existingSecret: b}, ca: {existingSecret: c}}, readReplicas: {count: 1}, restore: {from: a/b, existingClaim: c}, networkPolicy: {egress: {enabled: true}}, " +
	"upgrade: {check: {group: always}}, monitoring: {token: {existingSecret: t}, serviceMonitor: {enabled: true}, rules: {enabled: true}}"

// odd are values that somebody may write for any other.
var odd = map[string]any{
	"an empty text": "", "spaces": " a b ", "odd characters": "Ünï: {{ .x }} \"'#\\$(A)", "two lines": "a\nb: c", "a long text": strings.Repeat("a", 300), "a short text": "a",
	"a text with a slash": "a/b", "null": nil, "true": true, "0": 0, "-1": -1, "a fraction": 1.5, "a huge number": 1e17,
	"a list": []any{"a"}, "a list of numbers": []any{1}, "a list of maps": []any{map[string]any{}}, "a list of odd names": []any{map[string]any{"name": "A b"}}, "a map": map[string]any{"a": "b"},
	"a map of maps": map[string]any{"a": map[string]any{}}, "a map of odd names": map[string]any{"a b": "c d"}, "an empty map": map[string]any{}, "an empty list": []any{},
}

// sweeper renders the chart as Helm does, and reads its schema once: reading it takes longer than all else.
type sweeper struct {
	chart  *v2.Chart
	schema *jsonschema.Schema
}

func newSweeper(t *testing.T) *sweeper {
	t.Helper()
	c, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Schema))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("file:///values.schema.json", text); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("file:///values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return &sweeper{c, schema}
}

// takes reports what the chart has against values, or Kubernetes against what is made of them.
func (s *sweeper) takes(given map[string]any) error {
	as := common.ReleaseOptions{Name: "prod-db", Namespace: "prod", IsInstall: true}
	all, err := util.ToRenderValuesWithSchemaValidation(s.chart, given, as, capabilities(kubeVersion), true)
	if err != nil {
		return err
	}
	b, err := json.Marshal(all["Values"])
	if err != nil {
		return err
	}
	values, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return err
	}
	if err := s.schema.Validate(values); err != nil {
		return err
	}
	files, err := engine.Engine{}.Render(s.chart, all)
	if err != nil {
		return err
	}
	_, err = decoded(files)
	return err
}

// leavesOf calls f for the path of each value that is no map of the chart's own.
func leavesOf(of map[string]any, under []string, f func(path []string)) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		path := append(slices.Clone(under), key)
		if m, ok := of[key].(map[string]any); ok && len(m) > 0 {
			leavesOf(m, path, f)
		} else {
			f(path)
		}
	}
}

// names reports whether a text names a value.
func names(text string, path []string) bool {
	last := len(path) - 1
	parent := "'/" + strings.Join(path[:last], "/") + "'"
	if last == 0 {
		parent = "''"
	}
	if whole := strings.Join(path[:last], "."); last > 0 && strings.Contains(text, whole+": ") && strings.Contains(text, path[last]) {
		return true
	}
	return strings.Contains(text, "'/"+strings.Join(path, "/")) || strings.Contains(text, strings.Join(path, ".")) ||
		strings.Contains(text, "at "+parent) && strings.Contains(text, "'"+path[last]+"'")
}

// TestSweep writes odd values for each value: either what is rendered is what Kubernetes takes, or the answer names the value.
func TestSweep(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var defaults map[string]any
	if err := yaml.Unmarshal(text, &defaults); err != nil {
		t.Fatal(err)
	}
	s := newSweeper(t)
	var refused, taken atomic.Int64
	t.Run("values", func(t *testing.T) {
		for _, key := range slices.Sorted(maps.Keys(defaults)) {
			t.Run(key, func(t *testing.T) {
				t.Parallel()
				leavesOf(map[string]any{key: defaults[key]}, nil, func(path []string) {
					for _, name := range slices.Sorted(maps.Keys(odd)) {
						err := s.takes(with(t, path, odd[name]))
						switch {
						case err == nil:
							taken.Add(1)
						case strings.Contains(err.Error(), "Kubernetes takes no such"), strings.Contains(err.Error(), "'not' failed"), !names(err.Error(), path):
							t.Errorf("%s: %s: %.600v", strings.Join(path, "."), name, err)
						default:
							refused.Add(1)
						}
					}
				})
			})
		}
	})
	if refused.Load() < 3000 || taken.Load() < 400 {
		t.Errorf("%d are refused, %d are taken", refused.Load(), taken.Load())
	}
}

// with are the values of the sweep with another one.
func with(t *testing.T, path []string, value any) (given map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte("{"+swept+"}"), &given); err != nil {
		t.Fatal(err)
	}
	in := given
	for _, key := range path[:len(path)-1] {
		if _, ok := in[key].(map[string]any); !ok {
			in[key] = map[string]any{}
		}
		in = in[key].(map[string]any)
	}
	in[path[len(path)-1]] = value
	return given
}
