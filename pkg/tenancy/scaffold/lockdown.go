package scaffold

// Controllers of Flux that follow references, and those that act for tenants.
const (
	referring = "(kustomize-controller|helm-controller|notification-controller|image-reflector-controller|image-automation-controller)"
	acting    = "(kustomize-controller|helm-controller)"
)

// argument is a patch that adds one argument to controllers.
func argument(controllers, value string) object {
	return object{
		"target": object{"kind": "Deployment", "name": controllers},
		"patch":  encode([]object{{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": value}}),
	}
}

// lockdown is a component over the files of flux bootstrap. Patches whose target is not
// there change nothing, so it fits an installation without the image controllers.
func (p Platform) lockdown() string {
	patches := []object{
		argument("kustomize-controller", "--no-remote-bases=true"),
		argument(acting, "--default-service-account=default"),
		{
			"target": object{"kind": "Kustomization", "group": "kustomize.toolkit.fluxcd.io", "name": "flux-system"},
			"patch":  encode([]object{{"op": "add", "path": "/spec/serviceAccountName", "value": "kustomize-controller"}}),
		},
	}
	comment := "Keeps Flux from acting for tenants with permissions of its own: no references across namespaces,\n" +
		"no remote bases, and the account default, which has no permissions, where none is named."
	if p.SharedSource {
		comment = "Keeps Flux from acting for tenants with permissions of its own: no remote bases, and the account\n" +
			"default where none is named. References across namespaces are allowed, because teams share a\n" +
			"source: any team can use the sources of any other."
	} else {
		patches = append([]object{argument(referring, "--no-cross-namespace-refs=true")}, patches...)
	}
	return document(comment, object{"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "patches": patches})
}

// sopsRules tell sops what to encrypt in this tree, and for whom.
func sopsRules(recipient string) string {
	return document("Secrets are encrypted for this recipient; the cluster has the key in flux-system/sops-age.",
		object{"creation_rules": []object{{"path_regex": `.*\.yaml$`, "encrypted_regex": encryptedFields, "age": recipient}}})
}

// encryptedFields are the fields of a Secret that are not public.
const encryptedFields = "^(data|stringData)$"

// workflow runs `platform check` on each change. The program is only run if its checksum
// is the one that the platform's admins wrote down.
func (p Platform) workflow() string {
	sum := p.CheckSHA256
	if sum == "" {
		sum = "${{ vars.LANDWAITER_SHA256 }}"
	}
	run := `test -n "$SHA256" || { echo "set the repository variable LANDWAITER_SHA256 to the checksum in SHA256SUMS of the release" >&2; exit 1; }
curl --fail --silent --show-error --location --output landwaiter "$PROGRAM"
echo "$SHA256  landwaiter" | sha256sum --check
chmod +x landwaiter
mv landwaiter "$RUNNER_TEMP"
"$RUNNER_TEMP/landwaiter" platform check .
`
	program := "https://github.com/landwaiter/landwaiter/releases/download/v" + LandwaiterVersion + "/landwaiter_" + LandwaiterVersion + "_linux_amd64"
	return document("", object{
		"name": "check", "on": []string{"pull_request", "push"},
		"permissions": object{"contents": "read"},
		"jobs": object{"check": object{
			"runs-on": "ubuntu-latest",
			"steps": []object{
				{"uses": "actions/checkout@v4", "with": object{"persist-credentials": false}},
				{"name": "landwaiter platform check", "env": object{"PROGRAM": "${{ vars.LANDWAITER_URL || '" + program + "' }}", "SHA256": sum}, "run": run},
			},
		}},
	})
}
