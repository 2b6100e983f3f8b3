//go:build e2e

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func TestHelmReadsThePackedChartAsTheFolder(t *testing.T) {
	folder := filepath.Join(root, "charts", "landwaiter")
	text, err := packChart(os.DirFS(folder), "landwaiter", origin{created: noon})
	require.NoError(t, err)
	packed := filepath.Join(t.TempDir(), "landwaiter-0.1.0.tgz")
	require.NoError(t, os.WriteFile(packed, text, 0o600))
	helm := suite.Program{Path: suite.MustTool(t, suite.ChartTools, "helm")}
	helm.Must(t, "lint", "--strict", packed)
	for _, args := range [][]string{{"template", "landwaiter"}, {"show", "chart"}, {"show", "values"}, {"show", "readme"}} {
		require.Equal(t, helm.Must(t, append(args, folder)...), helm.Must(t, append(args, packed)...), "%v", args)
	}
}

// The whole image is built and run nightly.
func TestTheChartRunsTheImageAsItsUser(t *testing.T) {
	objects, err := suite.Chart(t.Context(), "landwaiter")
	require.NoError(t, err)
	deployments := suite.Only(objects, "Deployment")
	require.Len(t, deployments, 1)
	var d appsv1.Deployment
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(deployments[0].Object, &d))
	pod := d.Spec.Template.Spec
	require.Equal(t, imageUser, fmt.Sprintf("%d:%d", *pod.SecurityContext.RunAsUser, *pod.SecurityContext.RunAsGroup))
	require.Empty(t, pod.Containers[0].Command, "the image's entry point runs")
}
