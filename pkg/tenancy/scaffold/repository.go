package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// Repository describes a team's own repository.
type Repository struct {
	Layout Layout
	Tenant *v1beta1.Tenant
	// Places are environments, or clusters in the layouts groups and arc.
	Places []string
	App    App
	// PublicKey is the PEM text of the key that signs the team's images; empty omits the team's
	// rules, and the cluster's apply.
	PublicKey string
	// Images are the images that the key signs, such as registry.example.com/team/**.
	Images string
	// Revision is the commit from which this program was built; see [Platform].
	Revision string
	// limited says that the repository has more places, which a run does not change.
	limited bool
}

// NewRepository returns the files of a team's own repository. It names the team's account
// wherever Flux needs one, and only namespaces of the team.
func NewRepository(r Repository) (Tree, error) {
	if r.Tenant == nil {
		return Tree{}, errors.New("no Tenant is described")
	}
	if err := r.complete(); err != nil {
		return Tree{}, err
	}
	t := Tree{By: r.by()}
	switch r.Layout {
	case LayoutFlux:
		r.flux(&t)
	case LayoutGroups:
		r.groups(&t)
	case LayoutArc:
		r.arc(&t)
	case LayoutDemo:
		demoManifests(&t)
	default:
		return Tree{}, fmt.Errorf("--layout is %q, it must be flux, groups, arc or demo", r.Layout)
	}
	if r.Layout == LayoutFlux || r.Layout == LayoutGroups { // in the others, teams share a repository
		t.add(TeamFile, teamFile(r.Tenant))
		if source := r.Tenant.Spec.Reconciler.Source; source != nil && onGitHub.MatchString(source.URL) {
			t.add(".github/workflows/check.yaml", Platform{Revision: r.Revision}.checkWorkflow())
		}
	}
	if r.limited {
		t.Only = append(r.folders(), TeamFile) // which matches the Tenant, and is not applied
	}
	return t, t.sort()
}

// onGitHub matches repositories whose workflows GitHub runs.
var onGitHub = regexp.MustCompile(`^(https|ssh)://([^@/]+@)?github\.com/`)

// folders are those of the places.
func (r Repository) folders() (folders []string) {
	for _, place := range r.Places {
		switch r.Layout {
		case LayoutFlux:
			folders = append(folders, place)
		case LayoutArc:
			folders = append(folders, path.Join("clusters", place, r.Tenant.Name))
		case LayoutGroups:
			folders = append(folders, path.Join("clusters", place))
		case LayoutDemo: // it has no places
		}
	}
	return folders
}

// by is the command in the first lines of the files.
func (r Repository) by() string { return "platform scaffold " + r.Tenant.Name }

func (r *Repository) complete() error {
	if r.Tenant = r.Tenant.DeepCopy(); r.Tenant.Spec.Reconciler == nil {
		// Anyone with a separate repository has an account that applies it.
		r.Tenant.Spec.Reconciler = &v1beta1.TenantReconciler{}
	}
	r.Layout = cmp.Or(r.Layout, LayoutFlux)
	places := map[Layout][]string{LayoutFlux: {"staging", "production"}, LayoutGroups: {"iris-dev", "iris-test"}, LayoutArc: {"cluster1"}}
	fillList(&r.Places, places[r.Layout]...)
	for _, place := range r.Places {
		check := checkName
		if r.Layout == LayoutGroups || r.Layout == LayoutArc { // they are clusters
			check = checkCluster
		}
		if err := check("--place", place); err != nil {
			return err
		}
	}
	if r.Layout != LayoutFlux && r.App.Chart.URL != "" {
		return fmt.Errorf("--app-chart means nothing with --own in the layout %s: the team's repository begins with manifests; put a "+
			"HelmRelease into the team's folder", r.Layout)
	}
	if r.App.Name == "" {
		r.App = App{Name: "podinfo", Chart: Chart{URL: podinfoCharts, Version: "6.x"}}
	}
	if err := checkName("--app", r.App.Name); err != nil {
		return err
	}
	if r.Layout == LayoutFlux {
		if err := r.App.checkChart(); err != nil {
			return err
		}
	}
	if (r.PublicKey == "") != (r.Images == "") {
		return errors.New("--signing-key and --images belong together: the key, and the images that it signs")
	}
	return nil
}

// podinfoCharts is the Helm repository of the example application.
const podinfoCharts = "https://stefanprodan.github.io/podinfo"

// podSecurity and containerSecurity are the minimum for the Pod Security level restricted and the library's
// set restricted. The user is a number because a kubelet cannot tell that a named user is not root.
func podSecurity() object {
	return object{"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": object{"type": "RuntimeDefault"}}
}

func containerSecurity() object {
	return object{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": object{"drop": []string{"ALL"}}}
}

// workloads is the namespace of the team's applications: the first that the Tenant lists, so that an added
// namespace moves nothing.
func workloads(tenant *v1beta1.Tenant) string {
	for _, namespace := range tenant.Spec.Namespaces {
		if namespace != tenant.Spec.HomeNamespace {
			return namespace
		}
	}
	return tenant.Spec.HomeNamespace
}

// flux adds a base and a folder for each environment, which sets the versions of the chart.
func (r Repository) flux(t *Tree) {
	home := r.Tenant.Spec.HomeNamespace
	source, release := r.App.release(home, "")
	spec := release["spec"].(object)
	spec["serviceAccountName"] = onboard.Account(r.Tenant)
	workloadsIn(spec, r.Tenant)
	about := "Every namespace of the team has a Pod Security level, and the cluster may have constraints: set the chart's\nvalues for " +
		"security so that its pods are not refused."
	if r.App.Chart.URL == podinfoCharts {
		about = ""
		spec["values"] = object{"podSecurityContext": podSecurity(), "securityContext": containerSecurity()}
	}
	delete(source["spec"].(object), "ref")
	if chart, ok := spec["chart"].(object); ok {
		delete(chart["spec"].(object), "version")
	}
	t.add("base/source.yaml", document("", source))
	t.add("base/release.yaml", document(about, release))
	t.add("base/kustomization.yaml", kustomization("", []string{"source.yaml", "release.yaml"}, object{"namespace": home}))
	resources := []string{"../base"}
	if r.PublicKey != "" {
		r.verification(t)
		resources = append(resources, "../"+rulesFolder)
	}
	for _, environment := range r.Places {
		t.add(path.Join(environment, "kustomization.yaml"), kustomization("", resources, object{"patches": []object{{"path": "values.yaml"}}}))
		comment, patches := r.inEnvironment(environment)
		t.add(path.Join(environment, "values.yaml"), document(comment, patches...))
	}
}

// inEnvironment patches the application with the values and versions of one environment.
func (r Repository) inEnvironment(environment string) (comment string, patches []object) {
	app, replicas := r.App, 1
	switch environment {
	case "staging":
		if app.Chart.Version = app.Chart.preReleases(); app.Chart.Version != r.App.Chart.Version {
			comment = "The range includes pre-releases, because its versions end with -0. Other environments take stable versions."
		} else if app.Chart.stableOnly() {
			comment = "The range takes stable versions here too: for pre-releases, write one whose versions end with -0, such as >=1.2.0-0."
		}
	case "production":
		replicas = 2
	}
	source, release := app.release(r.Tenant.Spec.HomeNamespace, "")
	spec := object{"values": object{"replicaCount": replicas}}
	if ref, ok := source["spec"].(object)["ref"]; ok {
		source["spec"] = object{"ref": ref}
		patches = append(patches, source)
	} else {
		spec["chart"] = object{"spec": object{"version": app.Chart.Version}}
	}
	release["spec"] = spec
	return comment, append(patches, release)
}

// groups adds a folder for each cluster, with the namespaces that the team creates.
func (r Repository) groups(t *Tree) {
	for _, cluster := range r.Places {
		folder := path.Join("clusters", cluster)
		resources := []string{}
		if prefix := r.Tenant.Spec.NamespacePrefix; prefix != "" && r.Tenant.Spec.Reconciler.CreateNamespaces {
			resources = append(resources, "namespaces")
			t.add(path.Join(folder, "namespaces/kustomization.yaml"), kustomization("", []string{"namespaces.yaml"}, nil))
			t.add(path.Join(folder, "namespaces/namespaces.yaml"),
				document("Names begin with "+prefix+". Flux sets the label of the team, whatever this says.",
					object{"apiVersion": "v1", "kind": "Namespace",
						"metadata": object{"name": prefix + "apps", "labels": object{v1beta1.LabelTenant: r.Tenant.Name}}}))
		}
		t.add(path.Join(folder, "kustomization.yaml"), kustomization("", append(resources, "apps"), nil))
		t.add(path.Join(folder, "apps/kustomization.yaml"), kustomization("", []string{"settings.yaml"}, nil))
		t.add(path.Join(folder, "apps/settings.yaml"), document("What the team's applications share. Replace it by applications.",
			object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": named(workloads(r.Tenant), "settings"), "data": object{"cluster": cluster}}))
	}
}

// arc adds the repository of an application without a chart: its manifests, and a patch for
// each cluster and tenant.
func (r Repository) arc(t *Tree) {
	labels := object{"app.kubernetes.io/name": r.App.Name}
	base := object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": r.App.Name, "labels": labels}, "spec": object{
		"replicas": 1, "selector": object{"matchLabels": labels},
		"template": object{"metadata": object{"labels": labels}, "spec": object{
			"automountServiceAccountToken": false,
			"securityContext":              podSecurity(),
			"containers": []object{{"name": r.App.Name, "image": "registry.example.com/" + r.Tenant.Name + "/" + r.App.Name + ":v1",
				"envFrom":         []object{{"configMapRef": object{"name": r.App.Name}}},
				"securityContext": containerSecurity()}},
		}}}}
	folder := path.Join("deployments", r.App.Name)
	// the first tenant's run writes it
	t.seed(path.Join(folder, "base-deployment.yaml"), document("Every tenant's "+r.App.Name+" begins with this.", base))
	t.seed(path.Join(folder, "config-map.yaml"),
		document("",
			object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": r.App.Name}, "data": object{"LOG_LEVEL": "info"}}))
	t.add(path.Join(folder, "kustomization.yaml"), kustomization("", []string{"base-deployment.yaml", "config-map.yaml"}, nil))
	for _, cluster := range r.Places {
		overlay := path.Join("clusters", cluster, r.Tenant.Name)
		t.add(path.Join(overlay, r.App.Name+"-patch.yaml"), document("", object{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": object{"name": r.App.Name}, "spec": object{"replicas": 2}}))
		t.add(path.Join(overlay, "kustomization.yaml"), kustomization("", []string{relative(overlay, folder)},
			object{"namespace": workloads(r.Tenant), "patches": []object{{"path": r.App.Name + "-patch.yaml"}}}))
	}
}

// verification adds the team's own rules for its images, in the home namespace.
func (r Repository) verification(t *Tree) {
	resource := func(kind, name string, spec object) object {
		return object{"apiVersion": v1beta1.GroupVersion.String(), "kind": kind, "metadata": named(r.Tenant.Spec.HomeNamespace, name),
			"spec": spec}
	}
	t.add(rulesFolder+"/truststore.yaml",
		document("", resource("TrustStore", "release-keys", object{"type": "PublicKeys", "source": object{"inline": r.PublicKey}})))
	t.add(rulesFolder+"/verifier.yaml", document("", resource("Verifier", "release-signature", object{"type": "Cosign",
		"cosign": object{"keys": object{"trustStoreRefs": []object{{"name": "release-keys"}}, "insecureIgnoreTransparencyLog": true}}})))
	t.add(rulesFolder+"/policy.yaml", document("", resource("VerificationPolicy", "images", object{
		"rules":         []object{{"images": []string{r.Images}, "require": []object{{"anyOf": []string{"release-signature"}}}}},
		"defaultAction": "Inherit"})))
	t.add(rulesFolder+"/kustomization.yaml", kustomization("", []string{"truststore.yaml", "verifier.yaml", "policy.yaml"}, nil))
}
