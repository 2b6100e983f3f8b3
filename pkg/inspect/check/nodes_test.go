package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

func TestNodesThatLookElsewhereForNamesWithoutAHostAreNamed(t *testing.T) {
	for about, c := range map[string]struct {
		runtimes map[string]string // of nodes
		says     string
	}{
		"no node":     {nil, ""},
		"containerd":  {map[string]string{"a": "containerd://2.1.4"}, ""},
		"it is empty": {map[string]string{"a": ""}, ""},
		"CRI-O":       {map[string]string{"a": "containerd://2.1.4", "b": "cri-o://1.34.1"}, "CRI-O is the container runtime of 1 nodes: b"},
	} {
		t.Run(about, func(t *testing.T) {
			inventory := sound(t)
			for name, runtime := range c.runtimes {
				n := corev1.Node{ObjectMeta: named("", name)}
				n.Status.NodeInfo.ContainerRuntimeVersion = runtime
				inventory.Nodes = append(inventory.Nodes, n)
			}
			findings := check.Examine(inventory, schema.Embedded()).Findings
			if c.says == "" {
				require.Empty(t, findings)
				return
			}
			require.Len(t, findings, 1)
			require.Equal(t, c.says, findings[0].Message)
			require.Equal(t, resource.Note, findings[0].Severity)
		})
	}
}
