package scaffold

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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

// Arguments that keep teams from the cloud identity of a controller: it then authenticates as an account
// of the object's namespace. Without the feature, the other two stop the controller.
const (
	workloadIdentity  = "--feature-gates=ObjectLevelWorkloadIdentity=true"
	kubeConfigAccount = "--default-kubeconfig-service-account=default"
	decryptionAccount = "--default-decryption-service-account=default"
)

// decryptsByAccount reports whether Flux has to decrypt with the cloud identity of the account that an object
// names, because the controller's own identity may decrypt the platform's secrets.
func (p Platform) decryptsByAccount() bool { return p.SOPSKMS != "" && !p.oldFlux }

// oldController matches the image of a kustomize-controller that stops at these arguments: Flux before 2.7.
var oldController = regexp.MustCompile(`kustomize-controller:v(0|1\.[0-6])\.`)

// knowsFlux checks the components from flux bootstrap; a tree without them gets a new Flux.
func (p *Platform) knowsFlux(read func(name string) []byte) {
	for _, folder := range p.entries() {
		p.oldFlux = p.oldFlux || oldController.Match(read(path.Join(folder, "gotk-components.yaml")))
	}
}

// lockdown is a component over the files of flux bootstrap. Patches without a target change
// nothing, so it fits an installation without the image controllers.
func (p Platform) lockdown() string {
	patches := []object{
		argument("kustomize-controller", "--no-remote-bases=true"),
		argument(acting, "--default-service-account=default"),
		{
			"target": object{"kind": "Kustomization", "group": "kustomize.toolkit.fluxcd.io", "name": "flux-system"},
			"patch":  encode([]object{{"op": "add", "path": "/spec/serviceAccountName", "value": "kustomize-controller"}}),
		},
	}
	if p.decryptsByAccount() {
		patches = append(patches, argument(acting, workloadIdentity), argument(acting, kubeConfigAccount),
			argument("kustomize-controller", decryptionAccount))
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

// lockdownArguments are the required arguments of each controller.
func (p Platform) lockdownArguments() map[string][]string {
	const refs, bases, account = "--no-cross-namespace-refs=true", "--no-remote-bases=true", "--default-service-account=default"
	arguments := map[string][]string{"kustomize-controller": {bases, account}, "helm-controller": {account}}
	if p.decryptsByAccount() {
		arguments["kustomize-controller"] = append(arguments["kustomize-controller"], workloadIdentity, kubeConfigAccount, decryptionAccount)
		arguments["helm-controller"] = append(arguments["helm-controller"], workloadIdentity, kubeConfigAccount)
	}
	if !p.SharedSource {
		for _, name := range []string{"kustomize-controller", "helm-controller", "notification-controller", "image-reflector-controller",
			"image-automation-controller"} {
			arguments[name] = append([]string{refs}, arguments[name]...)
		}
	}
	return arguments
}

// trialFlux are controllers without arguments, and the Kustomization of flux bootstrap.
func trialFlux() string {
	var objects []object
	for _, name := range slices.Sorted(maps.Keys(Platform{}.lockdownArguments())) {
		objects = append(objects, object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": named(fluxNamespace, name),
			"spec": object{"template": object{"spec": object{"containers": []object{{"name": "manager", "args": []string{"--log-level=info"}}}}}}})
	}
	objects = append(objects, step{platformSource, "./", nil, object{"serviceAccountName": ""}}.object())
	return document("", objects...)
}

// entries are the folders of flux bootstrap.
func (p Platform) entries() []string {
	var tree Tree
	p.layout(&tree)
	var folders []string
	for _, file := range tree.Files {
		if folder := path.Dir(file.Path); path.Base(folder) == "flux-system" && path.Base(file.Path) == "kustomization.yaml" {
			folders = append(folders, folder)
		}
	}
	return folders
}

// lockdowns checks the tree's effect on Flux in each cluster: the presence of an argument
// counts, and not how a file sets it.
func (c *checker) lockdowns() {
	var expected []string
	if c.settings != nil {
		expected = c.settings.entries()
	}
	for name := range c.files {
		if path.Base(name) == "gotk-components.yaml" && path.Base(path.Dir(name)) == "flux-system" {
			expected = append(expected, path.Dir(name))
		}
	}
	for _, folder := range expected {
		if c.instanceOf(path.Dir(folder)) != nil {
			continue
		}
		if name := c.kustomizationFile(folder); name == "" || c.virtual[name] {
			c.find("NotLockedDown", folder, "Flux is not locked down: the folder has no kustomization.yaml; write it again with "+
				"landwaiter platform init")
		}
	}
	for _, folder := range c.folders() {
		if path.Base(folder) != "flux-system" || c.instanceOf(path.Dir(folder)) != nil || !c.buildable(folder) || c.build(folder).failed {
			continue
		}
		if err := c.lockdown(folder); err != nil {
			c.find("NotLockedDown", c.at(folder), "whether Flux is locked down cannot be tried: %v", err)
		}
	}
}

func (c *checker) lockdown(folder string) error {
	const components, sync = "gotk-components.yaml", "gotk-sync.yaml"
	trial := &checker{files: map[string][]byte{}, memory: c.memory}
	tried, texts := folder, map[string]string{path.Join(folder, components): trialFlux(), path.Join(folder, sync): ""}
	if own, b := c.buildRoot(path.Dir(folder), bootstrapped()); own.Unstructured != nil && !b.failed {
		if file, text, t, _ := c.transformed(own, own.folder); t != nil {
			tried, texts[file] = own.folder, text // Flux transforms the whole folder of the cluster
		}
	}
	saved := map[string]string{}
	for file, text := range texts {
		saved[file] = string(c.files[file])
		trial.keep(file, text)
	}
	made, err := c.run(tried)
	for file, content := range saved {
		trial.keep(file, content)
	}
	if err != nil {
		return err
	}
	if tried != folder {
		made.objects = slices.DeleteFunc(made.objects, func(o *unstructured.Unstructured) bool {
			return isFlux(o, "Kustomization") && o.GetName() != platformSource
		})
	}
	for _, missing := range c.platform().unlocked(made.objects) {
		c.find("NotLockedDown", c.at(folder), "Flux is not locked down: %s; add the component components/flux-lockdown, as landwaiter platform "+
			"init writes it", missing)
	}
	return nil
}

// platform returns the settings of the tree, those of any tree if it has none.
func (c *checker) platform() Platform {
	if c.settings == nil {
		return Platform{}
	}
	return *c.settings
}

// unlocked lists the missing parts of objects to which the lockdown was applied.
func (p Platform) unlocked(objects []*unstructured.Unstructured) []string {
	var missing []string
	for name := range p.lockdownArguments() {
		if !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" && o.GetName() == name }) {
			missing = append(missing, name+" has another name, or is taken out")
		}
	}
	for _, o := range objects {
		if isFlux(o, "Kustomization") {
			if account, _, _ := unstructured.NestedString(o.Object, "spec", "serviceAccountName"); account != "kustomize-controller" {
				missing = append(missing, "Kustomization flux-system has no serviceAccountName kustomize-controller")
			}
		}
		missing = append(missing, p.lacking(o)...)
	}
	slices.Sort(missing)
	return missing
}

// lacking lists the errors in the arguments of one controller.
func (p Platform) lacking(o *unstructured.Unstructured) (missing []string) {
	for _, argument := range p.lockdownArguments()[o.GetName()] {
		if !slices.Contains(argumentsOf(o), argument) {
			missing = append(missing, fmt.Sprintf("%s lacks %s", o.GetName(), argument))
		}
	}
	if flag, twice := contradicting(argumentsOf(o)); twice {
		missing = append(missing, fmt.Sprintf("%s has %s twice, and the last one counts", o.GetName(), flag))
	}
	return missing
}

// contradicting returns a flag that is given twice; gates of features accumulate.
func contradicting(arguments []string) (string, bool) {
	seen := map[string]bool{}
	for _, argument := range arguments {
		flag, _, _ := strings.Cut(argument, "=")
		if seen[flag] && flag != "--feature-gates" {
			return flag, true
		}
		seen[flag] = true
	}
	return "", false
}

// argumentsOf returns the arguments of a Deployment's first container.
func argumentsOf(o *unstructured.Unstructured) []string {
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return nil
	}
	first, _ := containers[0].(map[string]any)
	arguments, _, _ := unstructured.NestedStringSlice(first, "args")
	return arguments
}
