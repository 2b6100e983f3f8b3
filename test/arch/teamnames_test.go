package arch

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/test/kit/rbac"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// teamFields returns the fields of a type that hold the names of teams or their namespaces.
func teamFields(of reflect.Type, path string, found []string) []string {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return teamFields(of.Elem(), path, found)
	case reflect.Struct:
	default:
		return found
	}
	if !strings.HasPrefix(of.PkgPath(), "github.com/landwaiter/") {
		return found
	}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		at := path + "." + name
		if regexp.MustCompile(`(?i)(namespace|tenant)`).MatchString(name) &&
			name != "vaultNamespace" && name != "tenantID" { // of Vault Enterprise and of Azure
			found = append(found, at)
		}
		found = teamFields(field.Type, at, found)
	}
	return found
}

// Admins of teams are bound to landwaiter-cluster-reader.
func TestTheClusterReaderReadsNoFieldThatNamesATeam(t *testing.T) {
	for _, kind := range v1beta1.Kinds() {
		if kind.Namespaced {
			continue
		}
		fields := teamFields(reflect.TypeOf(kind.New()), kind.Name, nil)
		if !rbac.NamesTeams(kind.Name) {
			require.Empty(t, fields, "the kind belongs in landwaiter-tenant-reader: charts/landwaiter/templates/personas.yaml")
		} else {
			require.NotEmpty(t, fields, "%s belongs in landwaiter-cluster-reader", kind.Name)
		}
	}
}

func TestNoStatusThatTheClusterReaderReadsNamesATeam(t *testing.T) {
	key := written.InlineKey(string(written.NewKey(t).PEM))
	team := func(name string) []string {
		return []string{written.Object("Tenant", "", name, "homeNamespace: "+name+"\nnamespaces: ["+name+"-web]"), written.Namespace(name, name),
			written.Namespace(name+"-web", name+"-web"),
			written.Object("Verifier", name, "own", "type: Cosign\ncosign: {keys: {trustStoreRefs: [{kind: ClusterTrustStore, name: keys}], "+
				"insecureIgnoreTransparencyLog: true}}"),
			written.Object("VerificationPolicy", name, "own", "defaultAction: Inherit\nrules: [{images: ['**'], require: [{anyOf: [missing]}]}]"),
			written.Object("Store", name, "own", "registries: [r.example.com]")}
	}
	documents := append(team("zzblue"), team("zzgreen")...)
	documents = append(documents,
		written.Object("ClusterTrustStore", "", "keys", "type: PublicKeys\nsource: {secretKeyRef: {name: missing, key: k}}"),
		written.Object("ClusterTrustStore", "", "inline", key),
		written.Object("ClusterVerifier", "", "sound", strings.ReplaceAll(written.CosignVerifier, "keys}]", "inline}]")),
		written.Object("ClusterVerifier", "", "broken", written.CosignVerifier),
		written.Object("ClusterVerificationPolicy", "", "fallback", "rules: [{images: ['**'], require: [{anyOf: [broken]}]}]"),
		written.Object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\nrules: [{images: ['**'], require: [{anyOf: [missing]}]}]"),
		written.Object("ClusterStore", "", "mirror", "registries: [r.example.com]\nimagePullSecrets: [{name: missing}]"))
	snapshot, _ := written.Compiled(written.Objects(t, documents...))
	seen := 0
	for source, report := range conditions.Reports(snapshot, verify.Cluster) {
		if rbac.NamesTeams(source.Kind) {
			continue
		}
		seen++
		require.NotContains(t, fmt.Sprintf("%+v", report), "zz", source.String())
	}
	require.Equal(t, 7, seen)
}
