package flux

import (
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// Definitions returns the CRDs of Flux's resources from the modules that
// test/tools/flux pins.
func Definitions(ctx context.Context) (all []*unstructured.Unstructured, err error) {
	for _, controller := range []string{"source-controller", "kustomize-controller", "helm-controller"} {
		module, err := suite.Module(ctx, "flux", "github.com/fluxcd/"+controller)
		if err != nil {
			return nil, err
		}
		files, err := filepath.Glob(filepath.Join(module, "config/crd/bases/*.yaml"))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("find the CRDs of %s: %d files, %w", controller, len(files), err)
		}
		for _, file := range files {
			definitions, err := cluster.DecodeFile(file)
			if err != nil {
				return nil, err
			}
			all = append(all, definitions...)
		}
	}
	return all, nil
}
