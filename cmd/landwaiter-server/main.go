// Command landwaiter-server runs in the cluster: serve answers Gatekeeper, and operate
// provisions Tenants. It turns flags into Options: the work is in the packages below pkg.
package main

import (
	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
)

func main() { program.Main(newRoot) }

func newRoot() *cobra.Command {
	var shared sharedFlags
	root := &cobra.Command{
		Use:   "landwaiter-server",
		Short: "Decide which container images a Kubernetes cluster admits",
		Long: `Landwaiter verifies the signatures of container images for OPA Gatekeeper. If a namespace has no
resources, the resources of its Tenant or of the cluster apply. This is the server; people use
landwaiter.

Exit codes:
  0   the program exited as requested
  64  the command line is wrong, or a file that it names cannot be used
  69  something that the program needs failed, such as the address to listen on`,
		Example: `  landwaiter-server serve --config-dir /etc/landwaiter --tls-dir /etc/tls --client-ca gatekeeper-ca.crt`,
	}
	shared.register(root.PersistentFlags())
	hideShared(root)
	return program.Root(root, newServe(&shared), newOperate(&shared))
}
