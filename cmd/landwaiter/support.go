package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/inspect/support"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

func newSupport(by person) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "support",
		Short: "Write a support archive",
		Long: `Support writes one archive (.tar.gz) for the people who help you. It contains versions, how the
programs run, the conditions of resources, the findings of check, Events, and the metrics of each
pod. Support reads with your permissions, and lists in the archive what you cannot read. In
addition to the ClusterRole landwaiter-checker, you need "list" for events and pods, and "get" for
pods/proxy (metrics).

The archive contains no Secrets, no ConfigMaps and no spec of a resource. "(redacted)" replaces
text that looks like a password, a token or a private key, and values in the query of a URL. Names
of namespaces, registries and images stay: review the archive before you send it.`,
		Example: `  landwaiter support
  landwaiter support --file /tmp/landwaiter.tar.gz`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, _, err := by.config()
			if err != nil {
				return err
			}
			account, err := by.landwaiter()
			if err != nil {
				return err
			}
			ctx, cancel, failed := bounded(cmd.Context(), config, by.within(cmd))
			defer cancel()
			schemas := schema.Embedded()
			reader, err := live.New(config, schemas)
			if err != nil {
				return program.Failed(err)
			}
			inventory, err := check.Read(ctx, reader.Client(),
				check.Options{Namespace: account.Namespace, Asker: check.NewAsker(config), Outages: outages(reader), Review: conditions.ReviewStored},
				time.Now())
			if err != nil {
				return failed(err)
			}
			archive, err := support.Collect(ctx, config, reader.Client(), inventory, check.Examine(inventory, schemas), program.Version())
			if err != nil {
				return failed(err)
			}
			if file == "" {
				file = "landwaiter-support-" + inventory.Now.UTC().Format("20060102T150405Z") + ".tar.gz"
			}
			switch err := writeNew(file, archive); {
			case errors.Is(err, fs.ErrExist):
				return fmt.Errorf("%w: give another name with --file", err)
			case err != nil:
				return program.Failed(err)
			}
			program.Say(cmd.OutOrStdout(), "%s: %s; look through it before you send it", file, strings.Join(archive.Names(), ", "))
			return nil
		},
	}
	uses(cmd, time.Minute, flagAccount)
	cmd.Flags().StringVar(&file, "file", "", "new file to write (empty: landwaiter-support-TIME.tar.gz in this directory)")
	return cmd
}

// writeNew writes an archive that only its owner can read. It never overwrites a file.
func writeNew(name string, archive *support.Archive) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the path is the user's
	if err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return errors.Join(archive.Write(file), file.Close())
}
