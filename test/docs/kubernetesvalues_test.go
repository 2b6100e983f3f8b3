package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/landwaiter/landwaiter/test/kit/generated"
)

// listed are the values of Kubernetes' own string types; any text is a value of a type with none.
var listed = map[reflect.Type][]string{
	reflect.TypeFor[corev1.AppArmorProfileType]():        {"Unconfined", "RuntimeDefault", "Localhost"},
	reflect.TypeFor[corev1.AzureDataDiskCachingMode]():   {"None", "ReadOnly", "ReadWrite"},
	reflect.TypeFor[corev1.AzureDataDiskKind]():          {"Shared", "Dedicated", "Managed"},
	reflect.TypeFor[corev1.Capability]():                 nil,
	reflect.TypeFor[corev1.HostPathType]():               {"", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"},
	reflect.TypeFor[corev1.MountPropagationMode]():       {"None", "HostToContainer", "Bidirectional"},
	reflect.TypeFor[corev1.NodeSelectorOperator]():       {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"},
	reflect.TypeFor[corev1.PersistentVolumeAccessMode](): {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"},
	reflect.TypeFor[corev1.PersistentVolumeMode]():       {"Block", "Filesystem"},
	reflect.TypeFor[corev1.PodFSGroupChangePolicy]():     {"OnRootMismatch", "Always"},
	reflect.TypeFor[corev1.PodSELinuxChangePolicy]():     {"Recursive", "MountOption"},
	reflect.TypeFor[corev1.ProcMountType]():              {"Default", "Unmasked"},
	reflect.TypeFor[corev1.Protocol]():                   {"TCP", "UDP", "SCTP"},
	reflect.TypeFor[corev1.PullPolicy]():                 {"Always", "IfNotPresent", "Never"},
	reflect.TypeFor[corev1.RecursiveReadOnlyMode]():      {"Disabled", "IfPossible", "Enabled"},
	reflect.TypeFor[corev1.SeccompProfileType]():         {"Unconfined", "RuntimeDefault", "Localhost"},
	reflect.TypeFor[corev1.StorageMedium]():              nil,
	reflect.TypeFor[corev1.SupplementalGroupsPolicy]():   {"Merge", "Strict"},
	reflect.TypeFor[corev1.TaintEffect]():                {"", "NoSchedule", "PreferNoSchedule", "NoExecute"},
	reflect.TypeFor[corev1.TolerationOperator]():         {"", "Exists", "Equal"},
	reflect.TypeFor[metav1.LabelSelectorOperator]():      {"In", "NotIn", "Exists", "DoesNotExist"},
}

// localhost is the rule of profiles: a name belongs to the type Localhost alone.
const localhost = `{"if": {"properties": {"type": {"const": "Localhost"}}}, "then": {"required": ["localhostProfile"]}, "else": {"properties": ` +
	`{"localhostProfile": {"type": "null"}}}}`

// operators is the rule of requirements: In and NotIn need values; Exists and DoesNotExist take none.
const operators = `{"if": {"properties": {"operator": {"enum": ["Exists", "DoesNotExist"]}}}, "then": {"properties": {"values": {"maxItems": 0}}}, "else": ` +
	`{"required": ["values"], "properties": {"values": {"minItems": 1}}}}`

// rules are what the API server demands of a type or a field and its Go type does not say.
var rules = map[string]string{
	"AppArmorProfile":                     localhost,
	"Capability":                          `{"pattern": "^[A-Z][A-Z0-9_]*$"}`,
	"ConfigMapKeySelector":                `{"required": ["name", "key"]}`,
	"ConfigMapVolumeSource":               `{"required": ["name"]}`,
	"ConfigMapVolumeSource.defaultMode":   `{"maximum": 511}`,
	"DownwardAPIVolumeSource.defaultMode": `{"maximum": 511}`,
	"EnvVar":                              `{"maxProperties": 2}`,
	"EnvVar.name":                         `{"pattern": "^[-._a-zA-Z][-._a-zA-Z0-9]*$"}`,
	"EnvVarSource":                        `{"minProperties": 1, "maxProperties": 1}`,
	"EphemeralVolumeSource":               `{"required": ["volumeClaimTemplate"]}`,
	"HostPathVolumeSource.path":           `{"minLength": 1}`,
	"IPBlock.cidr":                        `{"$ref": "#/definitions/cidr"}`,
	"IPBlock.except":                      `{"items": {"$ref": "#/definitions/cidr"}}`,
	"KeyToPath.mode":                      `{"maximum": 511}`,
	"KeyToPath.path":                      `{"pattern": "^[^/]"}`,
	"LabelSelector.matchLabels":           `{"$ref": "#/definitions/labels"}`,
	"LabelSelectorRequirement":            operators,
	"LabelSelectorRequirement.key":        `{"$ref": "#/definitions/labelKey"}`,
	"LabelSelectorRequirement.values":     `{"items": {"$ref": "#/definitions/labelValue"}}`,
	"LocalObjectReference.name":           `{"$ref": "#/definitions/name"}`,
	"NetworkPolicyPeer":                   `{"minProperties": 1, "if": {"required": ["ipBlock"]}, "then": {"maxProperties": 1}}`,
	"NetworkPolicyPort": `{"if": {"required": ["endPort"]}, "then": {"required": ["port"], "properties": {"port": ` +
		`{"type": "integer"}}}}`,
	"NetworkPolicyPort.endPort": `{"minimum": 1, "maximum": 65535}`,
	"NetworkPolicyPort.port": `{"type": ["integer", "string"], "minimum": 1, "maximum": 65535, "maxLength": 15, "pattern": ` +
		`"^([0-9]+-?)*[a-z]([-a-z0-9]*[a-z0-9])?$"}`,
	"NodeSelector.nodeSelectorTerms": `{"minItems": 1}`,
	"NodeSelectorRequirement": `{"allOf": [` + operators + `, {"if": {"properties": {"operator": {"enum": ["Gt", "Lt"]}}}, "then": ` +
		`{"properties": {"values": {"maxItems": 1, "items": {"pattern": "^-?[0-9]+$"}}}}}]}`,
	"NodeSelectorTerm.matchFields": `{"items": {"type": "object", "additionalProperties": false, "required": ["key", "operator", "values"], ` +
		`"properties": {"key": {"const": "metadata.name"}, "operator": {"enum": ["In", "NotIn"]}, "values": {"type": "array", "minItems": 1, "maxItems": 1, ` +
		`"items": {"type": "string"}}}}}`,
	"SecurityContext": `{"if": {"properties": {"privileged": {"const": true}}, "required": ["privileged"]}, "then": ` +
		`{"properties": {"allowPrivilegeEscalation": {"enum": [true, null]}}}}`,
	"StorageMedium":                                   `{"pattern": "^(Memory|HugePages(-[0-9]+[KMG]i)?)?$"}`,
	"NodeSelectorRequirement.key":                     `{"$ref": "#/definitions/labelKey"}`,
	"NodeSelectorRequirement.values":                  `{"items": {"$ref": "#/definitions/labelValue"}}`,
	"PersistentVolumeClaimSpec":                       `{"required": ["accessModes", "resources"]}`,
	"PodAffinityTerm.topologyKey":                     `{"$ref": "#/definitions/labelKey"}`,
	"PodAffinityTerm.namespaces":                      `{"items": {"$ref": "#/definitions/namespace"}}`,
	"PreferredSchedulingTerm.weight":                  `{"minimum": 1, "maximum": 100}`,
	"ProjectedVolumeSource.defaultMode":               `{"maximum": 511}`,
	"SeccompProfile":                                  localhost,
	"SecretKeySelector":                               `{"required": ["name", "key"]}`,
	"SecretVolumeSource":                              `{"required": ["secretName"]}`,
	"SecretVolumeSource.defaultMode":                  `{"maximum": 511}`,
	"SecretVolumeSource.secretName":                   `{"$ref": "#/definitions/name"}`,
	"ServiceAccountTokenProjection.path":              `{"minLength": 1}`,
	"ServiceAccountTokenProjection.expirationSeconds": `{"minimum": 600}`,
	"Sysctl.name":                                     `{"pattern": "^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$"}`,
	"Toleration": `{"if": {"properties": {"operator": {"const": "Exists"}}, "required": ["operator"]}, "then": ` +
		`{"properties": {"value": {"maxLength": 0}}}, "else": {"required": ["key"], "properties": {"key": {"minLength": 1}}}}`,
	"Toleration.key":                 `{"pattern": "^(([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"}`,
	"Toleration.tolerationSeconds":   `{"minimum": -9223372036854775808}`,
	"Toleration.value":               `{"maxLength": 63, "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"}`,
	"Volume":                         `{"maxProperties": 2}`,
	"Volume.name":                    `{"$ref": "#/definitions/namespace"}`,
	"VolumeMount.mountPath":          `{"pattern": "^[^:]+$"}`,
	"VolumeMount.name":               `{"$ref": "#/definitions/namespace"}`,
	"VolumeProjection":               `{"minProperties": 1, "maxProperties": 1}`,
	"WeightedPodAffinityTerm.weight": `{"minimum": 1, "maximum": 100}`,
}

// typeSchemas derives JSON schema from types of Kubernetes, one definition for each struct.
type typeSchemas struct {
	definitions map[string]map[string]any
	used        map[string]bool // rules and listed types
}

// ruled adds the rule of a name to a schema. A reference replaces it.
func (s *typeSchemas) ruled(name string, schema map[string]any) map[string]any {
	text, ok := rules[name]
	if !ok {
		return schema
	}
	s.used[name] = true
	var more map[string]any
	if err := json.Unmarshal([]byte(text), &more); err != nil {
		panic(fmt.Sprintf("rule of %s: %v", name, err))
	}
	if more["$ref"] != nil {
		return more
	}
	maps.Copy(schema, more)
	return schema
}

func reference(name string) map[string]any { return map[string]any{"$ref": "#/definitions/" + name} }

// of returns the schema of a type.
func (s *typeSchemas) of(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return reference("quantity")
	case reflect.TypeFor[intstr.IntOrString]():
		return map[string]any{"type": []string{"integer", "string"}}
	case reflect.TypeFor[corev1.ResourceList]():
		return reference("resourceList")
	case reflect.TypeFor[metav1.ObjectMeta]():
		return map[string]any{"type": "object", "additionalProperties": false,
			"properties": map[string]any{"labels": reference("labels"), "annotations": reference("annotations")}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.String:
		schema := map[string]any{"type": "string"}
		if t.PkgPath() == "" {
			return schema
		}
		values, known := listed[t]
		if !known {
			panic(fmt.Sprintf("name the values of %s in listed", t))
		}
		s.used[t.String()] = true
		if len(values) > 0 {
			return map[string]any{"enum": values}
		}
		return s.ruled(t.Name(), schema)
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		if s.definitions[t.Name()] == nil {
			schema := map[string]any{"type": "object", "additionalProperties": false}
			s.definitions[t.Name()] = schema
			properties, required := map[string]any{}, []string{}
			s.fields(t, properties, &required)
			schema["properties"] = properties
			if slices.Sort(required); len(required) > 0 {
				schema["required"] = required
			}
			s.ruled(t.Name(), schema)
		}
		return reference(t.Name())
	}
	panic(fmt.Sprintf("%s is of no kind that is known here", t))
}

// fields adds the fields of a struct, and those that are inlined. An optional field may be null, as it may in Kubernetes.
func (s *typeSchemas) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			s.fields(field.Type, properties, required)
			continue
		}
		schema := s.ruled(t.Name()+"."+name, s.of(field.Type))
		if options == "" {
			*required = append(*required, name)
		} else if of, ok := schema["type"].(string); ok && of != "array" && of != "object" {
			schema["type"] = []string{of, "null"}
		}
		properties[name] = schema
	}
}

// A wrong type or a typo in such a value would otherwise end at the API server, which does not know the value's name.
func TestTheSchemaOfKubernetesTypesInTheChartsValuesIsUpToDate(t *testing.T) {
	s := &typeSchemas{definitions: map[string]map[string]any{}, used: map[string]bool{}}
	for _, value := range []any{corev1.EnvVar{}, corev1.ResourceRequirements{}, corev1.PodSecurityContext{}, corev1.SecurityContext{}, corev1.Toleration{},
		corev1.Affinity{},
		corev1.Volume{}, corev1.VolumeMount{}, networkingv1.NetworkPolicyPeer{}, networkingv1.NetworkPolicyEgressRule{}} {
		s.of(reflect.TypeOf(value))
	}
	// Claims are those of spec.resourceClaims, which no value sets.
	delete(s.definitions["ResourceRequirements"]["properties"].(map[string]any), "claims")
	delete(s.definitions, "ResourceClaim")
	for name := range rules {
		require.True(t, s.used[name], "no value needs the rule of %s", name)
	}
	for of := range listed {
		require.True(t, s.used[of.String()], "no value is of type %s", of)
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(s.definitions)) {
		text, err := json.Marshal(s.definitions[name])
		require.NoError(t, err)
		lines = append(lines, fmt.Sprintf("    %q: %s", name, text))
	}
	require.NoError(t, generated.Check(filepath.Join(root, "charts/landwaiter/values.schema.json"),
		`    "kubernetes": {"$comment": "The definitions below are those of types of Kubernetes, by make generate."},`, "  }", strings.Join(lines, ",\n")+"\n"))
}
