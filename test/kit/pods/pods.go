// Package pods returns what the objects of a platform's tree run: one pod of each workload, and of each workload in
// the charts of its HelmReleases, as a controller would make it.
package pods

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// Pod is a pod that a tree leads to.
type Pod struct {
	corev1.Pod

	// Of names the object that makes it, and the release whose chart has that object.
	Of string
	// Beside are the objects of the same chart or tree.
	Beside []*unstructured.Unstructured
}

// Of returns the pods of objects, and the charts that are not to be had here, by URL and name. Each chart is
// rendered by helm with the values of its release, as the real chart of that name.
func Of(ctx context.Context, objects []*unstructured.Unstructured) (pods []Pod, missing []string, err error) {
	if pods, err = ofWorkloads(objects, ""); err != nil {
		return nil, nil, err
	}
	for _, o := range objects {
		if o.GroupVersionKind().Group != "helm.toolkit.fluxcd.io" || o.GetKind() != "HelmRelease" {
			continue
		}
		rendered, at, err := render(ctx, o, objects)
		if err != nil {
			return nil, nil, fmt.Errorf("render HelmRelease %s/%s: %w", o.GetNamespace(), o.GetName(), err)
		}
		if rendered == nil {
			if !slices.Contains(missing, at) {
				missing = append(missing, at)
			}
			continue
		}
		found, err := ofWorkloads(rendered, at+": ")
		if err != nil {
			return nil, nil, err
		}
		pods = append(pods, found...)
	}
	return pods, missing, nil
}

// Built returns the objects of every kustomization below a folder that no other one includes.
func Built(dir string) (objects []*unstructured.Unstructured, err error) {
	folders, included := []string{}, map[string]bool{}
	if err = filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.Name() != "kustomization.yaml" {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read a kustomization: %w", err)
		}
		var k struct{ Resources, Components []string }
		if err := yaml.Unmarshal(text, &k); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		folders = append(folders, filepath.Dir(name))
		for _, resource := range append(k.Resources, k.Components...) {
			included[filepath.Join(filepath.Dir(name), resource)] = true
		}
		return nil
	}); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone
	for _, folder := range folders {
		// A component has no objects of its own.
		if included[folder] || filepath.Base(filepath.Dir(folder)) == "components" {
			continue
		}
		made, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", folder, err)
		}
		text, err := made.AsYaml()
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", folder, err)
		}
		found, err := cluster.Decode(text)
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", folder, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// templates are where kinds have their pod.
func templates(kind string) []string {
	switch kind {
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job":
		return []string{"spec", "template"}
	case "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template"}
	}
	return nil
}

func ofWorkloads(objects []*unstructured.Unstructured, of string) (pods []Pod, err error) {
	for _, o := range objects {
		made := Pod{Of: fmt.Sprintf("%s%s %s/%s", of, o.GetKind(), o.GetNamespace(), o.GetName()), Beside: objects}
		template := o.Object
		if o.GetKind() != "Pod" || o.GetAPIVersion() != "v1" {
			fields := templates(o.GetKind())
			if fields == nil {
				continue
			}
			if template, _, err = unstructured.NestedMap(o.Object, fields...); err != nil {
				return nil, fmt.Errorf("%s: %w", made.Of, err)
			}
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(template, &made.Pod, true); err != nil {
			return nil, fmt.Errorf("%s: %w", made.Of, err)
		}
		made.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		made.Name, made.Namespace = o.GetName(), o.GetNamespace()
		pods = append(pods, made)
	}
	return pods, nil
}

// render returns the objects of a release, but for its tests, and where its chart comes from. It returns no objects if the
// chart is somebody's own.
func render(ctx context.Context, release *unstructured.Unstructured, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, string, error) {
	var r struct {
		Spec struct {
			ReleaseName, TargetNamespace string
			Values                       map[string]any
			ChartRef                     reference
			Chart                        struct {
				Spec struct {
					Chart     string
					SourceRef reference
				}
			}
		}
	}
	text, err := release.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read it: %w", err)
	}
	source := r.Spec.Chart.Spec.SourceRef
	if source.Name == "" {
		source = r.Spec.ChartRef
	}
	at, err := source.url(release.GetNamespace(), objects)
	if err != nil {
		return nil, "", err
	}
	if chart := r.Spec.Chart.Spec.Chart; chart != "" {
		at += " " + chart
	}
	dir, err := os.MkdirTemp("", "chart-")
	if err != nil {
		return nil, "", fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	folder, err := folderOf(ctx, at, filepath.Join(dir, "chart"))
	if folder == "" || err != nil {
		return nil, at, err
	}
	namespace := release.GetNamespace()
	if r.Spec.TargetNamespace != "" {
		namespace = r.Spec.TargetNamespace
	}
	if text, err = yaml.Marshal(r.Spec.Values); err != nil {
		return nil, "", fmt.Errorf("write its values: %w", err)
	}
	values := filepath.Join(dir, "values.yaml")
	if err := os.WriteFile(values, text, 0o600); err != nil {
		return nil, "", fmt.Errorf("write its values: %w", err)
	}
	rendered, err := suite.Render(ctx, folder, "--namespace", namespace, "--skip-tests", "--kube-version", "1.36", "--values", values)
	for _, o := range rendered {
		if o.GetNamespace() == "" { // a chart leaves it to the release
			o.SetNamespace(namespace)
		}
	}
	return rendered, at, err
}

// reference names a source, in the namespace of whoever refers to it unless it says another.
type reference struct{ Kind, Name, Namespace string }

func (r reference) url(namespace string, objects []*unstructured.Unstructured) (string, error) {
	if r.Namespace != "" {
		namespace = r.Namespace
	}
	for _, o := range objects {
		if o.GetKind() == r.Kind && o.GetName() == r.Name && o.GetNamespace() == namespace {
			url, _, err := unstructured.NestedString(o.Object, "spec", "url")
			return url, err
		}
	}
	return "", fmt.Errorf("there is no %s %s/%s", r.Kind, namespace, r.Name)
}

// alone copies a chart to dir, without the charts that its values leave out.
func alone(folder, dir string) (string, error) {
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		return "", fmt.Errorf("copy %s: %w", folder, err)
	}
	file := filepath.Join(dir, "Chart.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the chart: %w", err)
	}
	var chart map[string]any
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return "", fmt.Errorf("read the chart: %w", err)
	}
	delete(chart, "dependencies")
	if text, err = yaml.Marshal(chart); err != nil {
		return "", fmt.Errorf("write the chart: %w", err)
	}
	for name, text := range map[string][]byte{"Chart.yaml": text, "Chart.lock": nil} {
		written := filepath.Join(dir, name)
		if err := os.Remove(written); err != nil { // modules are read-only
			return "", fmt.Errorf("write the chart: %w", err)
		}
		if text == nil {
			continue
		}
		if err := os.WriteFile(written, text, 0o600); err != nil {
			return "", fmt.Errorf("write the chart: %w", err)
		}
	}
	return dir, nil
}

// folderOf returns a folder with the chart that people get from there; empty if it is an example's name. It may write into
// dir, an empty folder.
func folderOf(ctx context.Context, at, dir string) (string, error) {
	module := func(path, folder string) (string, error) {
		dir, err := suite.Download(ctx, path)
		return filepath.Join(dir, folder), err
	}
	switch at {
	case "https://stefanprodan.github.io/podinfo podinfo":
		return module("github.com/stefanprodan/podinfo@v1.8.1-0.20250910200901-e86405a8674e", "charts/podinfo")
	case "https://charts.external-secrets.io external-secrets":
		folder, err := module("github.com/external-secrets/external-secrets@v0.20.4", "deploy/charts/external-secrets")
		if err != nil {
			return "", err
		}
		return alone(folder, dir)
	case "https://open-policy-agent.github.io/gatekeeper/charts gatekeeper":
		return suite.GatekeeperChart(ctx)
	case "oci://ghcr.io/landwaiter/charts/landwaiter":
		return filepath.Join(suite.Root, "charts/landwaiter"), nil
	}
	return "", nil
}
