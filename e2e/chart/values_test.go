package chart

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	appsv1 "k8s.io/api/apps/v1"
)

var update = flag.Bool("update", false, "write docs/values.md anew")

const valuesHead = `# Values of the Helm chart

Generated from ` + "`charts/trireme/values.yaml`" + `, by ` + "`go -C e2e/chart test -run TestValuesPage . -update`" + `. How to use them:
[operations-kubernetes.md](operations-kubernetes.md). Wrong values are refused before anything is made. Values that stand in one
line together are told of together.
`

// row is one value, or several that one comment is about.
type row struct {
	names, defaults []string
	text, example   string
}

// page tells of all values what their comments say.
type page struct {
	b        strings.Builder
	problems []string
}

// words are what a comment says; lines that are indented are an example.
func words(comment string) (text, example string) {
	for line := range strings.Lines(comment) {
		line = strings.TrimRight(strings.TrimPrefix(line, "#"), " \n")
		switch {
		case strings.HasPrefix(line, "   "):
			example += line[3:] + "\n"
		case line != "":
			text += line
		}
	}
	return strings.TrimSpace(text), example
}

// short is a default as it is written.
func short(n *yaml.Node) string {
	c := *n
	c.HeadComment, c.LineComment, c.FootComment, c.Style = "", "", "", c.Style|yaml.FlowStyle
	text, err := yaml.Marshal(&c)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// isGroup reports whether a value consists of others that have lines of their own.
func isGroup(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 && len(n.Content) > 0
}

// leaves are the values of a map, and of those in it. What the map's comment says is of the first ones that have none.
func (p *page) leaves(n *yaml.Node, under, about string, rows []*row) []*row {
	var last *row
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		text, example := words(key.HeadComment)
		name := under + key.Value
		if isGroup(value) {
			if text != "" && value.Content[0].HeadComment != "" {
				rows, text = append(rows, &row{names: []string{name}, text: text}), ""
			}
			rows, last = p.leaves(value, name+".", text, rows), nil
			continue
		}
		if text != "" || last == nil {
			if text == "" {
				text = about
			}
			if text == "" && under == "" {
				p.problems = append(p.problems, name)
			}
			last = &row{text: text, example: example}
			rows = append(rows, last)
		}
		last.names, last.defaults = append(last.names, name), append(last.defaults, short(value))
	}
	return rows
}

func (p *page) table(rows []*row) {
	p.b.WriteString("\n| Value | Default | Meaning |\n|---|---|---|\n")
	cell := func(all []string) string {
		var marked []string
		for _, s := range all {
			marked = append(marked, "`"+s+"`")
		}
		return strings.Join(marked, "<br>")
	}
	for _, r := range rows {
		fmt.Fprintf(&p.b, "| %s | %s | %s |\n", cell(r.names), cell(r.defaults), strings.ReplaceAll(r.text, "|", `\|`))
	}
	for _, r := range rows {
		if r.example != "" {
			fmt.Fprintf(&p.b, "\nAn entry of `%s`:\n\n```yaml\n%s```\n", r.names[0], r.example)
		}
	}
}

// valuesPage makes the page of a file of values.
func valuesPage(file []byte) (*page, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(file, &root); err != nil {
		return nil, err
	}
	p := &page{}
	p.b.WriteString(valuesHead)
	all := root.Content[0]
	var groups, single []*yaml.Node
	for i := 0; i < len(all.Content); i += 2 {
		key, value := all.Content[i], all.Content[i+1]
		if i == 0 { // the file's own comment comes before it
			if _, own, both := strings.Cut(key.HeadComment, "\n\n"); both {
				key.HeadComment = own
			}
		}
		if isGroup(value) {
			groups = append(groups, key, value)
		} else {
			single = append(single, key, value)
		}
	}
	p.b.WriteString("\n## The release as a whole, and pods of members\n")
	p.table(p.leaves(&yaml.Node{Kind: yaml.MappingNode, Content: single}, "", "", nil))
	for i := 0; i < len(groups); i += 2 {
		text, example := words(groups[i].HeadComment)
		if text == "" {
			p.problems = append(p.problems, groups[i].Value)
		}
		fmt.Fprintf(&p.b, "\n## %s\n\n%s\n", groups[i].Value, text)
		if example != "" {
			fmt.Fprintf(&p.b, "\n```yaml\n%s```\n", example)
		}
		p.table(p.leaves(groups[i+1], groups[i].Value+".", "", nil))
	}
	return p, nil
}

// TestValuesPage: docs/values.md says what the comments of values.yaml do, and each group of values has one.
func TestValuesPage(t *testing.T) {
	const name = "../../docs/values.md"
	file, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := valuesPage(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.problems) > 0 {
		t.Errorf("values.yaml says nothing of %v", p.problems)
	}
	want := p.b.String()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what values.yaml says: go -C e2e/chart test -run TestValuesPage . -update (%v)", name, err)
	}
	for _, must := range []string{"| `persistence.size` | `20Gi` | It may grow", "`readReplicas.podLabels`<br>", "- name: shop"} {
		if !strings.Contains(want, must) {
			t.Errorf("the page does not have %q", must)
		}
	}
}

// TestNullValues takes each group of values away, as `key: null` in a file of values does: the chart goes without it, or its
// schema names what is missing. A template that fails on it names a line of its own.
func TestNullValues(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var defaults map[string]any
	if err := yaml.Unmarshal(text, &defaults); err != nil {
		t.Fatal(err)
	}
	nulls(defaults, func(name, values string) {
		if _, err := render(values); err != nil && !strings.Contains(err.Error(), "missing property") {
			t.Errorf("%s: null: %v", name, err)
		}
	})
}

// mayBeNull are values that mean something without one, or that charts before did not have, so that `--reuse-values` gives none.
var mayBeNull = map[string]string{
	"image.pullPolicy": "Kubernetes'", "monitoring.serviceMonitor.interval": "Prometheus'", "monitoring.serviceMonitor.scrapeTimeout": "Prometheus'",
	"readReplicas.podDisruptionBudget.maxUnavailable": "the default", "service.grpc": "the default", "readService.from": "the default", "stopWaitSeconds": "the default",
	"backup.maxAgeHours": "none, as 0", "nodePortRange": "the default", "peerTLS.identity": "authority", "networkPolicy.egress.dnsPorts": "53",
	"enabled": "of umbrella charts",
}

// TestNullValue takes single values away that have a default: the schema names what is missing, since a node that has another setting than anybody
// wanted, or a field that is empty, tells nobody. What may be missing is known.
func TestNullValue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var defaults map[string]any
	if err := yaml.Unmarshal(text, &defaults); err != nil {
		t.Fatal(err)
	}
	valued := 0
	nullLeaves(defaults, func(name, values string) {
		valued++
		_, err := render(values)
		_, may := mayBeNull[name]
		if refused := err != nil && strings.Contains(err.Error(), "missing property"); may && err != nil || !may && !refused {
			t.Errorf("%s: null: %v", name, err)
		}
	})
	if valued < 40 {
		t.Errorf("only %d values", valued)
	}
	r := must(t, "stopWaitSeconds: null")
	if !strings.Contains(r.settings(t), "stop_wait = 300s\n") {
		t.Errorf("nobody waits for others:\n%s", r.settings(t))
	}
	if got := *object[*appsv1.StatefulSet](t, r, "StatefulSet/"+set).Spec.Template.Spec.TerminationGracePeriodSeconds; got != 360 {
		t.Errorf("pods have %d s to end", got)
	}
	if r := must(t, "stopWaitSeconds: 0"); !strings.Contains(r.settings(t), "stop_wait = 0s\n") {
		t.Errorf("0 is a value:\n%s", r.settings(t))
	}
}

// TestNullsThatStay: a default that was deleted by null has no default any more in later upgrades with --reuse-values, so that null is what templates see. For
// maps and lists it is an empty one; only what has to be there is missed.
func TestNullsThatStay(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	bare := *c
	bare.Values = map[string]any{}
	passed := []string{}
	var try func(at []string, of map[string]any)
	try = func(at []string, of map[string]any) {
		for key, value := range of {
			inner, isMap := value.(map[string]any)
			if _, isList := value.([]any); !isMap && !isList {
				continue
			}
			name := strings.Join(append(slices.Clone(at), key), ".")
			var given map[string]any
			if err := yaml.Unmarshal(text, &given); err != nil {
				t.Fatal(err)
			}
			in := given
			for _, k := range at {
				in = in[k].(map[string]any)
			}
			in[key] = nil
			files, err := rendered(&bare, nil, capabilities(kubeVersion), common.ReleaseOptions{Name: "prod-db", Namespace: "prod", IsUpgrade: true}, given)
			if err == nil {
				_, err = decoded(files)
			}
			if err == nil {
				passed = append(passed, name)
			} else if !strings.Contains(err.Error(), "at '/"+strings.ReplaceAll(name, ".", "/")+"': got null, want ") {
				t.Errorf("%s: null: %v", name, err)
			}
			try(append(slices.Clone(at), key), inner)
		}
	}
	try(nil, c.Values)
	for _, must := range []string{"resources.limits", "resources.requests", "resources", "affinity", "tolerations", "podAnnotations", "podLabels", "service.annotations", "networkPolicy.clients",
		"networkPolicy.egress.extra", "sidecars", "initContainers", "extraVolumes", "nodeSelector", "users", "settings", "imagePullSecrets", "upgrade.check.resources", "backup.resources",
		"podSecurityContext", "securityContext", "monitoring.rules.without", "service.loadBalancerSourceRanges", "persistence.annotations", "restore", "tracing"} {
		if !slices.Contains(passed, must) {
			t.Errorf("%s: null is refused", must)
		}
	}
}

// nullLeaves calls f for each value that is no map and whose default is not empty, with values that take it away. Maps that are Kubernetes' own are
// left out: there null takes away what the chart says.
func nullLeaves(of map[string]any, f func(name, values string)) {
	for key, value := range of {
		switch v := value.(type) {
		case map[string]any:
			if slices.Contains([]string{"resources", "claimResources", "probes", "podSecurityContext", "securityContext", "labels"}, key) {
				continue
			}
			nullLeaves(v, func(name, values string) { f(key+"."+name, fmt.Sprintf("{%q: %s}", key, values)) })
		case []any:
			if len(v) > 0 {
				f(key, fmt.Sprintf("{%q: null}", key))
			}
		default:
			if v != nil && !reflect.ValueOf(v).IsZero() {
				f(key, fmt.Sprintf("{%q: null}", key))
			}
		}
	}
}

// nulls calls f for each map in a map, and for those in them, with values that take it away.
func nulls(of map[string]any, f func(name, values string)) {
	for key, value := range of {
		if m, ok := value.(map[string]any); ok {
			f(key, fmt.Sprintf("{%q: null}", key))
			nulls(m, func(name, values string) { f(key+"."+name, fmt.Sprintf("{%q: %s}", key, values)) })
		}
	}
}
