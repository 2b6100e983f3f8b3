package library

import (
	"fmt"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/stretchr/testify/require"
)

// BenchmarkTheWorstOfATeam evaluates the largest objects that a team can make, at two sizes: what
// takes more than four times as long for four times the size is quadratic somewhere, and such an
// object keeps Gatekeeper busy until its webhook has timed out.
func BenchmarkTheWorstOfATeam(b *testing.B) {
	var prefixes, paths, ranges []any
	for i := range 64 {
		prefixes = append(prefixes, fmt.Sprintf("registry%d.example.com/a/{tenant}/", i))
		paths = append(paths, object{"pathPrefix": fmt.Sprintf("/var/log%d", i), "readOnly": true})
		ranges = append(ranges, object{"min": 100 * i, "max": 100*i + 50})
	}
	paths[63] = object{"pathPrefix": "/var/log", "readOnly": true}
	ids := object{"rule": "MustRunAs", "ranges": ranges}
	for _, c := range []struct {
		folder     string
		made       func(n int) (kind string, reviewed object)
		parameters object
	}{
		{"tenant-allowed-registries", largePod, object{"prefixes": prefixes, "shared": prefixes}},
		{"no-host-path-volumes", largePod, object{"allowedPaths": paths}},
		{"container-allowed-ports", largePod, object{"portRanges": ranges}},
		{"no-privileged-containers", largePod, object{"exemptImages": prefixes}},
		{"allowed-users-and-groups", largePod, object{"runAsUser": ids, "runAsGroup": ids}},
		{"seccomp-profile", largePod, object{"exemptImages": prefixes}},
		{"apparmor-profile", largePod, object{"exemptImages": prefixes}},
		{"external-secret-tenant-keys", largeSecret, object{}},
		{"flux-no-cross-namespace-refs", largeKustomization, object{}},
	} {
		e, err := newEvaluator(readTemplate(b, c.folder).parse(b))
		require.NoError(b, err)
		for _, n := range []int{1000, 4000} {
			kind, reviewed := c.made(n)
			input := ast.MustInterfaceToValue(with(kindReview(kind, "iris", reviewed), c.parameters))
			known := stored(manyTenants(n))
			b.Run(fmt.Sprintf("%s-%d", c.folder, n), func(b *testing.B) {
				for b.Loop() {
					if _, err := e.messages(b.Context(), input, known); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// manyTenants is an inventory of tenants whose names begin as iris does.
func manyTenants(n int) object {
	all := object{"iris": object{"metadata": object{"labels": object{"landwaiter.dev/tenant": "iris"}}}}
	for i := range n {
		name := fmt.Sprintf("iris-%d", i)
		all[name] = object{"metadata": object{"labels": object{"landwaiter.dev/tenant": name}}}
	}
	return object{"cluster": object{"v1": object{"Namespace": all}}}
}

func largePod(n int) (string, object) {
	var list, volumes []any
	for i := range n {
		list = append(list, object{
			"name": fmt.Sprintf("c%d", i), "image": realImage(i), "ports": []any{object{"containerPort": 7}},
			"volumeMounts": []any{object{"name": fmt.Sprintf("v%d", i), "mountPath": "/x"}},
		})
		volumes = append(volumes, object{"name": fmt.Sprintf("v%d", i), "hostPath": object{"path": fmt.Sprintf("/var/log/%d", i)}})
	}
	return "Pod", object{"metadata": object{}, "spec": object{"containers": list, "volumes": volumes}}
}

func largeSecret(n int) (string, object) {
	var data []any
	for i := range n {
		data = append(data, object{"secretKey": "k", "remoteRef": object{"key": fmt.Sprintf("iris-key%d", i)}})
	}
	return "ExternalSecret", object{"spec": object{"secretStoreRef": object{"kind": "ClusterSecretStore"}, "data": data}}
}

func largeKustomization(n int) (string, object) {
	var list []any
	for i := range n {
		list = append(list, object{"name": "a", "namespace": fmt.Sprintf("iris-%d", i)})
	}
	return "Kustomization", object{"spec": object{"dependsOn": list, "healthChecks": list}}
}
