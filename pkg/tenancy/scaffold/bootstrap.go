package scaffold

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// Bootstrap describes a cluster of flux-multitenant-demo before its first tenant.
type Bootstrap struct {
	// Components is the output of flux install --export.
	Components []byte
	// URL and Branch identify the repository that tenants share.
	URL, Branch string
	// IgnorePaths are files of it that Flux omits.
	IgnorePaths []string
	// SharedSource lets Kustomizations of tenants use the source itself, and every other one.
	SharedSource bool
}

// Manifest returns Flux with the lockdown of a tree, and the source that tenants share. Namespaces
// and CRDs come first, and the source last. It refuses components that would not be locked down.
func (b Bootstrap) Manifest() (string, error) {
	switch {
	case b.URL == "":
		return "",
			errors.New("--git-url is required: the repository that tenants share, such as https://github.com/example/flux-multitenant-demo")
	case !regexp.MustCompile(`^(https|ssh)://[^@ ]+$|^ssh://[A-Za-z0-9._-]+@[^@ ]+$`).MatchString(b.URL):
		return "", fmt.Errorf("--git-url is %q: begin the URL with https:// or ssh://, and leave out credentials%s", b.URL, sshHint(b.URL))
	case b.Branch == "" || strings.ContainsAny(b.Branch, " \n"):
		return "", fmt.Errorf("--git-branch is %q: give the name of a branch", b.Branch)
	}
	objects, err := b.lockedDown()
	if err != nil {
		return "", fmt.Errorf("--filename: %w", err)
	}
	order := func(o *unstructured.Unstructured) int {
		return slices.Index([]string{"CustomResourceDefinition", "Namespace"}, o.GetKind())
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return order(b) - order(a) })
	var all []object
	for _, o := range objects {
		all = append(all, o.Object)
	}
	return document("", append(all, b.source())...), nil
}

// source is the GitRepository default, which Kustomizations of tenants name.
func (b Bootstrap) source() object {
	spec := object{"interval": "1m", "url": b.URL, "ref": object{"branch": b.Branch}}
	if len(b.IgnorePaths) > 0 {
		spec["ignore"] = strings.Join(b.IgnorePaths, "\n")
	}
	return object{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
		"metadata": named(fluxNamespace, "default"), "spec": spec}
}

// lockedDown builds the components with the lockdown, as Flux does in a tree.
func (b Bootstrap) lockedDown() ([]*unstructured.Unstructured, error) {
	const components, lockdown = "gotk-components.yaml", "components/flux-lockdown"
	c, err := newChecker(CheckOptions{})
	if err != nil {
		return nil, err
	}
	for name, text := range map[string]string{
		components: string(b.Components),
		path.Join(lockdown, "kustomization.yaml"): Platform{SharedSource: b.SharedSource}.lockdown(),
		"kustomization.yaml":                      kustomization("", []string{components}, object{"components": []string{lockdown}}),
	} {
		c.keep(name, text)
	}
	c.inspect()
	built := c.build(".")
	if found := c.sorted(); len(found) > 0 {
		return nil, errors.New(found[0].Message)
	}
	installed := false
	for _, o := range built.objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		installed = installed || identity(o) == "Deployment "+fluxNamespace+"/kustomize-controller"
		if missing := (Platform{SharedSource: b.SharedSource}).lacking(o); len(missing) > 0 {
			return nil, fmt.Errorf("lock Flux down: %s; give what flux install --export prints, as it is", strings.Join(missing, ", "))
		}
		if slices.Contains(argumentsOf(o), "--watch-all-namespaces=false") {
			return nil,
				fmt.Errorf("%s has --watch-all-namespaces=false, so Flux would do nothing for tenants: run flux install "+
					"--watch-all-namespaces=true --export", identity(o))
		}
	}
	if !installed {
		return nil, fmt.Errorf("it has no Deployment %s/kustomize-controller: give what flux install --export prints", fluxNamespace)
	}
	return built.objects, nil
}

// sshHint shows the form of the URL that Flux accepts, if a repository is in the short form of
// SSH.
func sshHint(repository string) string {
	if better := onboard.SSHURL(repository); better != "" {
		return ": write " + better
	}
	return ""
}
