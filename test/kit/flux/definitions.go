package flux

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// Definitions returns the definitions of Flux's resources from the modules that
// test/tools/flux pins. root is the folder of the repository.
func Definitions(ctx context.Context, root string) (all []*unstructured.Unstructured, err error) {
	for _, controller := range []string{"source-controller", "kustomize-controller", "helm-controller"} {
		download := exec.CommandContext(ctx, "go", "-C", filepath.Join(root, "test/tools/flux"), "mod", "download", "-json", "github.com/fluxcd/"+controller)
		output, err := download.Output()
		if err != nil {
			return nil, fmt.Errorf("download %s: %w: %s", controller, err, output)
		}
		var module struct{ Dir string }
		if err := json.Unmarshal(output, &module); err != nil {
			return nil, fmt.Errorf("download %s: %w", controller, err)
		}
		files, err := filepath.Glob(filepath.Join(module.Dir, "config/crd/bases/*.yaml"))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("find the definitions of %s: %d files, %w", controller, len(files), err)
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
