package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// given are Kubernetes' own types, and the Prometheus operator's, of which values are that go into manifests as they are.
var given = []any{corev1.EnvVar{}, corev1.EnvFromSource{}, corev1.Volume{}, corev1.VolumeMount{}, corev1.Container{}, corev1.Toleration{}, corev1.Affinity{},
	corev1.TopologySpreadConstraint{}, corev1.PodSecurityContext{}, corev1.SecurityContext{}, corev1.ResourceRequirements{}, networkingv1.NetworkPolicyPeer{},
	networkingv1.NetworkPolicyEgressRule{}, monitoringv1.RelabelConfig{}}

const (
	dnsLabel   = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	portName   = "^([a-z0-9]+-)*[0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*$"
	dnsName    = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	keyName    = `^([-_A-Za-z0-9]|\.[-_A-Za-z0-9])[-._A-Za-z0-9]*$`
	relative   = "^[^/]"
	labelKey   = `([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`
	labelValue = "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
	envName    = "^[-._A-Za-z][-._A-Za-z0-9]*$"
	quantity   = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)([EPTGMk]i?|Ki|[mun]|[eE][0-9]{1,2})?$`
)

// narrow is what Kubernetes demands of a field besides its type. Of fields of the same name in every type the one without a type.
var narrow = map[string]map[string]any{
	"Container.name": {"pattern": dnsLabel, "maxLength": 63}, "Volume.name": {"pattern": dnsLabel, "maxLength": 63}, "VolumeMount.name": {"minLength": 1},
	"Container.image": {"minLength": 1, "pattern": `^\S+$`}, "EnvVar.name": {"pattern": envName}, "VolumeMount.mountPath": {"minLength": 1, "pattern": "^/[^:]*$"},
	"EnvFromSource.prefix":                       {"pattern": "^([-._A-Za-z][-._A-Za-z0-9]*)?$"},
	"Container.restartPolicy":                    one("Always", "OnFailure", "Never"),
	"pullPolicy":                                 one("", "Always", "IfNotPresent", "Never"),
	"Container.imagePullPolicy":                  one("Always", "IfNotPresent", "Never"),
	"terminationMessagePolicy":                   one("File", "FallbackToLogsOnError"),
	"mountPropagation":                           one("None", "HostToContainer", "Bidirectional"),
	"recursiveReadOnly":                          one("Disabled", "IfPossible", "Enabled"),
	"Toleration.operator":                        one("", "Exists", "Equal"),
	"Toleration.effect":                          one("", "NoSchedule", "PreferNoSchedule", "NoExecute"),
	"NodeSelectorRequirement.operator":           one("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
	"LabelSelectorRequirement.operator":          one("In", "NotIn", "Exists", "DoesNotExist"),
	"NodeSelector.nodeSelectorTerms":             {"minItems": 1},
	"PreferredSchedulingTerm.weight":             {"minimum": 1, "maximum": 100},
	"WeightedPodAffinityTerm.weight":             {"minimum": 1, "maximum": 100},
	"TopologySpreadConstraint.maxSkew":           {"minimum": 1},
	"TopologySpreadConstraint.minDomains":        {"minimum": 1},
	"TopologySpreadConstraint.whenUnsatisfiable": one("DoNotSchedule", "ScheduleAnyway"),
	"nodeAffinityPolicy":                         one("Honor", "Ignore"),
	"nodeTaintsPolicy":                           one("Honor", "Ignore"),
	"topologyKey":                                {"minLength": 1, "pattern": "^" + labelKey + "$"},
	"protocol":                                   one("TCP", "UDP", "SCTP"),
	"ContainerPort.containerPort":                {"minimum": 1, "maximum": 65535},
	"ContainerPort.hostPort":                     {"minimum": 0, "maximum": 65535},
	"LabelSelector.matchLabels":                  {"$ref": "#/definitions/labels"},
	"Probe.successThreshold":                     {"minimum": 1}, "Probe.failureThreshold": {"minimum": 1}, "Probe.periodSeconds": {"minimum": 1}, "Probe.timeoutSeconds": {"minimum": 1},
	"Probe.initialDelaySeconds": {"minimum": 0}, "Probe.terminationGracePeriodSeconds": {"minimum": 1},
	"ContainerPort.name":          {"maxLength": 15, "pattern": "^(|([a-z0-9]+-)*[0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*)$"},
	"NetworkPolicyPort.endPort":   {"minimum": 1, "maximum": 65535},
	"IPBlock.cidr":                {"pattern": "^[0-9a-fA-F.:]+/[0-9]{1,3}$"},
	"fsGroupChangePolicy":         one("OnRootMismatch", "Always"),
	"supplementalGroupsPolicy":    one("Merge", "Strict"),
	"seLinuxChangePolicy":         one("Recursive", "MountOption"),
	"SeccompProfile.type":         one("RuntimeDefault", "Unconfined", "Localhost"),
	"AppArmorProfile.type":        one("RuntimeDefault", "Unconfined", "Localhost"),
	"procMount":                   one("Default", "Unmasked"),
	"runAsUser":                   {"minimum": 0, "maximum": 2147483647},
	"runAsGroup":                  {"minimum": 0, "maximum": 2147483647},
	"fsGroup":                     {"minimum": 0, "maximum": 2147483647},
	"HTTPGetAction.scheme":        one("HTTP", "HTTPS"),
	"EmptyDirVolumeSource.medium": {"pattern": "^(Memory|HugePages(-.+)?)?$"},
	"HostPathVolumeSource.type":   one("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"),
	"HostPathVolumeSource.path":   {"minLength": 1},
	"defaultMode":                 {"minimum": 0, "maximum": 511},
	"mode":                        {"minimum": 0, "maximum": 511},
	"KeyToPath.key":               {"pattern": keyName, "maxLength": 253}, "KeyToPath.path": {"pattern": relative},
	"ConfigMapKeySelector.key": {"pattern": keyName, "maxLength": 253}, "SecretKeySelector.key": {"pattern": keyName, "maxLength": 253},
	"DownwardAPIVolumeFile.path":                      {"pattern": relative},
	"ClusterTrustBundleProjection.path":               {"pattern": relative},
	"ServiceAccountTokenProjection.path":              {"pattern": relative},
	"ServiceAccountTokenProjection.expirationSeconds": {"minimum": 600},
	"ConfigMapVolumeSource.name":                      {"pattern": dnsName, "maxLength": 253},
	"SecretVolumeSource.secretName":                   {"pattern": dnsName, "maxLength": 253},
	"ConfigMapProjection.name":                        {"pattern": dnsName, "maxLength": 253},
	"SecretProjection.name":                           {"pattern": dnsName, "maxLength": 253},
	"ConfigMapEnvSource.name":                         {"pattern": dnsName, "maxLength": 253},
	"SecretEnvSource.name":                            {"pattern": dnsName, "maxLength": 253},
	"ConfigMapKeySelector.name":                       {"pattern": dnsName, "maxLength": 253},
	"SecretKeySelector.name":                          {"pattern": dnsName, "maxLength": 253},
	"PersistentVolumeClaimVolumeSource.claimName":     {"pattern": dnsName, "maxLength": 253},
	"CSIVolumeSource.driver":                          {"pattern": `^[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?$`, "maxLength": 63},
	"NFSVolumeSource.path":                            {"pattern": "^/"},
	"HTTPHeader.name":                                 {"pattern": "^[-A-Za-z0-9]+$"},
	"GRPCAction.port":                                 {"minimum": 1, "maximum": 65535},
	"ExecAction.command":                              {"minItems": 1},
	"SleepAction.seconds":                             {"minimum": 0},
	"Toleration.key":                                  {"pattern": "^(" + labelKey + ")?$"},
	"Toleration.value":                                {"pattern": labelValue, "maxLength": 63},
	"LabelSelectorRequirement.key":                    {"pattern": "^" + labelKey + "$"},
	"NodeSelectorRequirement.key":                     {"pattern": "^" + labelKey + "$"},
	"Sysctl.name":                                     {"pattern": `^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`, "maxLength": 253},
	"supplementalGroups":                              {"items": map[string]any{"type": "integer", "minimum": 0, "maximum": 2147483647}},
	"Capabilities.add":                                {"items": map[string]any{"type": "string", "pattern": "^[A-Za-z0-9_]+$"}}, "Capabilities.drop": {"items": map[string]any{"type": "string", "pattern": "^[A-Za-z0-9_]+$"}},
	"ResourceRequirements.claims":         {"maxItems": 0},
	"ContainerResizePolicy.resourceName":  one("cpu", "memory"),
	"ContainerResizePolicy.restartPolicy": one("NotRequired", "RestartContainer"),
	"ResourceFieldSelector.resource":      {"pattern": `^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$`},
	"ObjectFieldSelector.apiVersion":      one("", "v1"),
	// Of spec and status newer versions have more.
	"ObjectFieldSelector.fieldPath":         {"pattern": `^(metadata\.(name|namespace|uid)|metadata\.(labels|annotations)(\['[^']+'\])?|spec\..+|status\..+)$`},
	"PersistentVolumeClaimSpec.accessModes": {"minItems": 1, "items": one("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")},
	"PersistentVolumeClaimSpec.volumeMode":  one("Filesystem", "Block"),
	"RelabelConfig.action": one("replace", "Replace", "keep", "Keep", "drop", "Drop", "hashmod", "HashMod", "labelmap", "LabelMap", "labeldrop", "LabelDrop", "labelkeep", "LabelKeep",
		"lowercase", "Lowercase", "uppercase", "Uppercase", "keepequal", "KeepEqual", "dropequal", "DropEqual"),
}

// ifThen is what holds for fields of a type together, as rules of JSON Schema.
var ifThen = map[string]map[string]any{
	"LabelSelectorRequirement": operators("In", "NotIn"),
	"NodeSelectorRequirement": {"allOf": []any{operators("In", "NotIn", "Gt", "Lt"),
		when(map[string]any{"operator": one("Gt", "Lt")}, "operator")("values", map[string]any{"maxItems": 1, "items": map[string]any{"pattern": "^-?[0-9]{1,18}$"}})}},
	"NodeSelectorTerm":      {"allOf": []any{map[string]any{"properties": map[string]any{"matchFields": map[string]any{"items": map[string]any{"properties": map[string]any{"key": one("metadata.name")}}}}}}},
	"DownwardAPIVolumeFile": {"allOf": []any{map[string]any{"properties": map[string]any{"fieldRef": map[string]any{"properties": map[string]any{"fieldPath": map[string]any{"pattern": `^metadata\.`}}}}}}, "oneOf": []any{map[string]any{"required": []string{"fieldRef"}}, map[string]any{"required": []string{"resourceFieldRef"}}}},
	"PersistentVolumeClaimTemplate": {"allOf": []any{map[string]any{"properties": map[string]any{"spec": map[string]any{"required": []string{"accessModes", "resources"},
		"properties": map[string]any{"accessModes": map[string]any{"type": "array"}, "resources": map[string]any{"type": "object", "required": []string{"requests"},
			"properties": map[string]any{"requests": map[string]any{"type": "object", "required": []string{"storage"}}}}}}}}}},
	"Toleration": {"allOf": []any{
		when(map[string]any{"operator": one("Exists")}, "operator")("value", map[string]any{"maxLength": 0}),
		map[string]any{"if": map[string]any{"required": []string{"tolerationSeconds"}, "properties": map[string]any{"tolerationSeconds": map[string]any{"type": "integer"}}},
			"then": map[string]any{"required": []string{"effect"}, "properties": map[string]any{"effect": one("NoExecute")}}},
		map[string]any{"if": map[string]any{"properties": map[string]any{"key": map[string]any{"maxLength": 0}}},
			"then": map[string]any{"required": []string{"operator"}, "properties": map[string]any{"operator": one("Exists")}}},
	}},
	"TopologySpreadConstraint": {"allOf": []any{map[string]any{"if": map[string]any{"required": []string{"matchLabelKeys"}, "properties": map[string]any{"matchLabelKeys": map[string]any{"type": "array", "minItems": 1}}},
		"then": map[string]any{"required": []string{"labelSelector"}, "properties": map[string]any{"labelSelector": map[string]any{"type": "object"}}}}, when(map[string]any{"minDomains": map[string]any{"type": "integer"}}, "minDomains")("whenUnsatisfiable", one("DoNotSchedule"))}},
	"NetworkPolicyPeer": {"minProperties": 1, "if": map[string]any{"required": []string{"ipBlock"}}, "then": map[string]any{"maxProperties": 1}},
	"EnvVarSource":      {"minProperties": 1, "maxProperties": 1},
	"VolumeProjection":  {"minProperties": 1, "maxProperties": 1},
	"LifecycleHandler":  {"minProperties": 1, "maxProperties": 1},
	"EnvFromSource":     {"oneOf": []any{map[string]any{"required": []string{"configMapRef"}}, map[string]any{"required": []string{"secretRef"}}}},
	"Probe": {"oneOf": []any{map[string]any{"required": []string{"exec"}}, map[string]any{"required": []string{"httpGet"}}, map[string]any{"required": []string{"tcpSocket"}},
		map[string]any{"required": []string{"grpc"}}}},
	"SeccompProfile": {"if": map[string]any{"properties": map[string]any{"type": one("Localhost")}}, "then": map[string]any{"required": []string{"localhostProfile"}, "properties": map[string]any{"localhostProfile": map[string]any{"type": "string"}}},
		"else": map[string]any{"properties": map[string]any{"localhostProfile": map[string]any{"type": "null"}}}},
}

// operators are the rules for a requirement of a selector: these operators need values, and others have none.
func operators(valued ...string) map[string]any {
	is := map[string]any{"properties": map[string]any{"operator": one(valued...)}}
	return map[string]any{"if": is, "then": map[string]any{"required": []string{"values"}, "properties": map[string]any{"values": map[string]any{"type": "array", "minItems": 1}}},
		"else": map[string]any{"properties": map[string]any{"values": map[string]any{"maxItems": 0}}}}
}

// when makes rules: with these properties, all of which are there, a field is so.
func when(is map[string]any, must ...string) func(field string, so map[string]any) map[string]any {
	return func(field string, so map[string]any) map[string]any {
		return map[string]any{"if": map[string]any{"required": must, "properties": is}, "then": map[string]any{"properties": map[string]any{field: so}}}
	}
}

// needed are fields that Kubernetes demands though their type does not say so, and left those that it has by the type and does not demand.
var (
	needed = []string{"Container.image", "ConfigMapVolumeSource.name", "SecretVolumeSource.secretName", "ConfigMapProjection.name", "SecretProjection.name", "ConfigMapEnvSource.name",
		"SecretEnvSource.name", "ConfigMapKeySelector.name", "SecretKeySelector.name", "ExecAction.command"}
	// counted are types of which just some fields may be there: null would be one of them.
	counted = []string{"NetworkPolicyPeer", "EnvVarSource", "VolumeProjection", "LifecycleHandler", "Probe", "EnvFromSource", "DownwardAPIVolumeFile"}
	left    = []string{"ResourceClaim.request", "PersistentVolumeClaimTemplate.metadata"}
)

func one(of ...string) map[string]any { return map[string]any{"enum": of} }

// known makes schemas of types of Go, by their names.
type known map[string]map[string]any

// orNull is a schema that null has too: Kubernetes takes it for what is not there, and a value that is deleted by null stays so with --reuse-values.
func orNull(schema map[string]any, optional bool) map[string]any {
	if optional {
		return map[string]any{"if": map[string]any{"type": "null"}, "else": schema}
	}
	return schema
}

// of is the schema of a type; optional values may be null as well.
func (k known) of(t reflect.Type, optional bool) map[string]any {
	kind := func(name string, more map[string]any) map[string]any {
		s := map[string]any{"type": name}
		if optional {
			s["type"] = []string{name, "null"}
		}
		maps.Copy(s, more)
		return s
	}
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return orNull(map[string]any{"type": []string{"string", "number"}, "pattern": quantity, "minimum": 0}, optional)
	case reflect.TypeFor[intstr.IntOrString]():
		return orNull(map[string]any{"type": []string{"integer", "string"}, "minimum": 1, "maximum": 65535, "pattern": portName, "maxLength": 15}, optional)
	case reflect.TypeFor[metav1.Time]():
		return kind("string", nil)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return k.of(t.Elem(), optional)
	case reflect.String:
		return kind("string", nil)
	case reflect.Bool:
		return kind("boolean", nil)
	case reflect.Int32:
		return kind("integer", map[string]any{"minimum": -1 << 31, "maximum": 1<<31 - 1})
	case reflect.Int64, reflect.Uint64:
		return kind("integer", nil)
	case reflect.Slice:
		return kind("array", map[string]any{"items": k.of(t.Elem(), false)})
	case reflect.Map:
		return kind("object", map[string]any{"additionalProperties": k.of(t.Elem(), false)})
	case reflect.Struct:
		k.add(t)
		return orNull(map[string]any{"$ref": "#/definitions/k8s." + t.Name()}, optional)
	}
	panic("a field of " + t.String())
}

// add makes the schema of a struct: other fields than its own are refused.
func (k known) add(t reflect.Type) {
	if k[t.Name()] != nil {
		return
	}
	fields, required := map[string]any{}, []string{}
	k[t.Name()] = map[string]any{"type": "object", "additionalProperties": false, "properties": fields}
	k.fields(t, t.Name(), fields, &required)
	maps.Copy(k[t.Name()], ifThen[t.Name()])
	if len(required) > 0 {
		slices.Sort(required)
		k[t.Name()]["required"] = required
	}
}

func (k known) fields(t reflect.Type, of string, fields map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || name == "" && !f.Anonymous {
			continue
		}
		if f.Anonymous && name == "" {
			k.fields(f.Type, of, fields, required)
			continue
		}
		full := of + "." + name
		must := !strings.Contains(options, "omit") && !slices.Contains(left, full) || slices.Contains(needed, full)
		optional := !must && !slices.Contains(counted, of)
		s := k.of(f.Type, optional)
		for _, n := range []string{name, full} {
			maps.Copy(s, narrow[n])
			if enum, is := narrow[n]["enum"].([]string); is {
				delete(s, "type")
				if optional && f.Type.Kind() == reflect.String && !slices.Contains(enum, "") {
					enum = append([]string{""}, enum...)
				}
				s["enum"] = enum
				s = orNull(s, optional)
			}
			if narrow[n]["$ref"] != nil {
				s = orNull(narrow[n], optional)
			}
		}
		fields[name] = s
		if must {
			*required = append(*required, name)
		}
	}
}

// TestSchemaKnowsKubernetes: values that go into manifests as they are have schemas, which are Kubernetes' types of the version that this module has: what the
// API would refuse for a field that is written wrong is refused before anything is made.
func TestSchemaKnowsKubernetes(t *testing.T) {
	k := known{}
	for _, v := range given {
		k.add(reflect.TypeOf(v))
	}
	k["ResourceRequirements"]["properties"].(map[string]any)["limits"] = orNull(map[string]any{"$ref": "#/definitions/k8s.ResourceList"}, true)
	k["ResourceRequirements"]["properties"].(map[string]any)["requests"] = orNull(map[string]any{"$ref": "#/definitions/k8s.ResourceList"}, true)
	k["ResourceList"] = map[string]any{"type": "object", "additionalProperties": false, "patternProperties": map[string]any{
		`^(cpu|memory|ephemeral-storage|hugepages-[0-9]+[KMGT]i|[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)$`: k.of(reflect.TypeFor[resource.Quantity](), false)}}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(k)) {
		b, err := json.Marshal(k[name])
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, `    "k8s.`+name+`": `+string(b))
	}
	file := filepath.Join(dir, "values.schema.json")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(b), ",\n    \"k8s.")
	head = strings.TrimSuffix(head, "\n  }\n}\n")
	want := head + ",\n" + strings.Join(lines, ",\n") + "\n  }\n}\n"
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(b) != want {
		t.Errorf("%s is not what Kubernetes' types are: go -C e2e/chart test -run TestSchemaKnowsKubernetes . -update", file)
	}
}
