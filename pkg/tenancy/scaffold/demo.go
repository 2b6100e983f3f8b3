package scaffold

// demoKustomization is what the demo's repository applies for each tenant.
const demoKustomization = "kustomizations/per-tenant/kustomization.yaml"

// demoManifests are the manifests that flux-multitenant-demo applies for each tenant, and the
// manifest that tries to leave its namespace. Flux replaces the variables. People extend
// them.
func demoManifests(t *Tree) {
	t.seed(demoKustomization, kustomization("", []string{"dummy_deployment.yaml"}, nil))
	t.seed("kustomizations/per-tenant/dummy_deployment.yaml", demoDeployment)
	t.seed("kustomizations/wrong-namespace/kustomization.yaml",
		kustomization("Tries to leave the tenant's namespace, and is refused.", []string{"wrong_namespace.yaml"}, nil))
	t.seed("kustomizations/wrong-namespace/wrong_namespace.yaml", document("", object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("default", "wrong-namespace"), "data": object{"tenant": "${SUBST_LITERAL}"}}))
}

const demoDeployment = `# The namespace here does not matter: Flux puts the object into the tenant's.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: dummy
  namespace: baz
  labels: {app.kubernetes.io/name: dummy}
spec:
  replicas: 1
  selector: {matchLabels: {app.kubernetes.io/name: dummy}}
  template:
    metadata:
      labels: {app.kubernetes.io/name: dummy}
    spec:
      automountServiceAccountToken: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        seccompProfile: {type: RuntimeDefault}
      containers:
      - name: dummy
        image: docker.io/library/busybox:1.37
        command: [/bin/sh, -c]
        args:
        - |
          echo '${PER_TENANT_SUBST}'
          exec sleep 2147483647
        env:
        - {name: SUBST_LITERAL, value: "${SUBST_LITERAL}"}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
`
