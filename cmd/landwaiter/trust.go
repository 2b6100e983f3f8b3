package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

func newTrust() *cobra.Command {
	return group("trust", "Export roots, timestamp authorities and revocation lists for air-gapped sites", newTrustExport())
}

// trustFlags are the flags of trust export.
type trustFlags struct {
	mirror, root, authority string
	skipRoot, timestamps    bool
	lists                   []string
	namespace, name, out    string
	configMapOnly           bool
}

func newTrustExport() *cobra.Command {
	var flags trustFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print a verified Sigstore root, timestamp authorities and revocation lists as a ConfigMap",
		Long: `Export reads a TUF repository, Sigstore's public-good one without --mirror, verifies it
as a trust store with spec.source.tuf does, and prints a ConfigMap with its trusted root
and the ClusterTrustStore that uses it. Apply them where no network leads to the
repository. --mirror may be a directory with a copy of the repository, which is verified
too; its metadata must not have expired.

--timestamp-authorities adds the root certificates of the timestamp authorities, for
Notation. --revocation-list adds certificate revocation lists, from a file or an
address; they are verified where they are used, by the certificate of their issuer.

The same trust material gives the same text. Expiry dates are printed on
standard error and in a comment; in the cluster, the condition ExpiresSoon warns.

Exit codes: 0 the trust material is printed, 1 it is refused: not signed by the repository's
keys, incomplete or expired, 64 the command line is wrong, or a file cannot be read, 69 the
repository or a list cannot be fetched, or the result cannot be written.`,
		Example: `  landwaiter trust export --out sigstore.yaml
  landwaiter trust export --mirror ./tuf-copy --root ./root.json --name company --timestamp-authorities
  landwaiter trust export --skip-root --name revocation --revocation-list http://crl.example.com/ca.crl`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.export(cmd) },
	}
	own := cmd.Flags()
	own.StringVar(&flags.mirror, "mirror", "", "https address of a TUF repository, or a directory with a copy of one (empty: Sigstore's)")
	own.StringVar(&flags.root, "root", "", "file with the repository's initial root.json (empty: Sigstore's)")
	own.StringVar(&flags.authority, "ca", "", "file with certificates to trust for --mirror, in addition to the system's (empty: none)")
	own.BoolVar(&flags.skipRoot, "skip-root", false, "read no TUF repository; only export --revocation-list")
	own.BoolVar(&flags.timestamps, "timestamp-authorities", false, "add the roots of the timestamp authorities as a trust store for Notation")
	own.StringArrayVar(&flags.lists, "revocation-list", nil, "file or http(s) address of a certificate revocation list, DER or PEM (repeatable; none: no lists)")
	own.StringVarP(&flags.namespace, "namespace", "n", "landwaiter-system", "namespace of the ConfigMap: the cluster resource namespace, where the ClusterTrustStores look for it")
	own.StringVar(&flags.name, "name", "sigstore", "name of the ConfigMap and of the ClusterTrustStores")
	own.StringVar(&flags.out, "out", "", "file to write, or a directory in which to write NAME.yaml (empty: standard output)")
	own.BoolVar(&flags.configMapOnly, "config-map-only", false, "print no ClusterTrustStores")
	return cmd
}

func (f trustFlags) export(cmd *cobra.Command) error {
	switch {
	case len(validation.IsDNS1123Label(f.namespace)) > 0:
		return fmt.Errorf("--namespace %q is not the name of a namespace", f.namespace)
	case len(validation.IsDNS1123Label(f.name)) > 0:
		return fmt.Errorf("--name %q cannot be the name of an object: use at most 63 lower-case letters, digits and dashes", f.name)
	case f.skipRoot && (f.mirror+f.root+f.authority != "" || f.timestamps):
		return errors.New("--skip-root reads no TUF repository: leave out --mirror, --root, --ca and --timestamp-authorities")
	case f.skipRoot && !cmd.Flags().Changed("name"):
		return errors.New("--skip-root needs --name: the default, sigstore, is the name of an exported root, which this export would replace")
	case f.skipRoot && len(f.lists) == 0:
		return errors.New("there is nothing to export: give --revocation-list, or leave out --skip-root")
	}
	made := scaffold.Trust{Namespace: f.namespace, Name: f.name, Source: "files", ConfigMapOnly: f.configMapOnly}
	var ends []trust.End
	if !f.skipRoot {
		found, err := f.readRoot(cmd, &made)
		if err != nil {
			return err
		}
		ends = found
	}
	found, err := f.readLists(cmd, &made)
	if err != nil {
		return err
	}
	ends = append(ends, found...)
	slices.SortStableFunc(ends, func(a, b trust.End) int { return a.At.Compare(b.At) })
	for _, end := range ends {
		made.Ends = append(made.Ends, end.At.UTC().Format(time.RFC3339)+" "+end.Part)
	}
	text, err := made.Manifest()
	if err != nil {
		return err
	}
	if err := f.write(cmd, text); err != nil {
		return program.Failed(err)
	}
	now := time.Now()
	for _, end := range ends {
		note := ""
		if end.Due(now) {
			note = "warning: "
		}
		program.Say(cmd.ErrOrStderr(), "%s%s ends at %s", note, end.Part, end.At.UTC().Format(time.RFC3339))
	}
	return nil
}

// readRoot adds what the TUF repository has, and returns when it ends.
func (f trustFlags) readRoot(cmd *cobra.Command, into *scaffold.Trust) ([]trust.End, error) {
	from := external.TUFRepository{Mirror: f.mirror}
	into.Source = "Sigstore's TUF repository"
	if f.mirror != "" {
		into.Source = "a TUF repository"
	}
	initial, err := program.ReadSetting("--root", f.root)
	if err != nil {
		return nil, err
	}
	authority, err := program.ReadSetting("--ca", f.authority)
	if err != nil {
		return nil, err
	}
	from.Root, from.Authority = string(initial), string(authority)
	copied, err := external.CopyTUF(cmd.Context(), from)
	var refused *external.RefusedError
	if errors.As(err, &refused) {
		return nil, &program.Exit{Code: program.ExitDenied, Err: err}
	}
	if err != nil {
		return nil, program.Failed(err)
	}
	root, err := trust.ParseSigstoreRoot(copied.TrustedRoot)
	if err != nil {
		return nil, &program.Exit{Code: program.ExitDenied, Err: err}
	}
	if into.Roles, err = external.EncodeRoles(copied.Roles); err != nil {
		return nil, err
	}
	into.Root = copied.TrustedRoot
	if f.timestamps {
		if into.TimestampAuthorities = trust.TimestampRoots(root); into.TimestampAuthorities == nil {
			return nil, &program.Exit{Code: program.ExitDenied, Err: errors.New("the trusted root has no timestamp authority; leave out --timestamp-authorities")}
		}
	}
	ends := trust.RootEnds(root)
	for _, role := range copied.Roles {
		if role.Renews() {
			ends = append(ends, trust.RoleEnd(role.Name, role.Version, role.Expires))
		}
	}
	return ends, nil
}

// readLists adds the revocation lists, and returns when they end.
func (f trustFlags) readLists(cmd *cobra.Command, into *scaffold.Trust) ([]trust.End, error) {
	if len(f.lists) == 0 {
		return nil, nil
	}
	for _, from := range f.lists {
		var content []byte
		var err error
		if strings.Contains(from, "://") {
			content, err = external.FetchRevocationList(cmd.Context(), from)
			err = program.Failed(err)
		} else {
			content, err = os.ReadFile(from) //nolint:gosec // the file is the user's
		}
		if err != nil {
			return nil, err
		}
		encoded, err := trust.EncodeRevocationLists(content, time.Now())
		if err != nil {
			return nil, &program.Exit{Code: program.ExitDenied, Err: fmt.Errorf("%s: %w", from, err)}
		}
		into.RevocationLists = append(into.RevocationLists, encoded...)
	}
	lists, err := trust.ParseRevocationLists(into.RevocationLists)
	if err != nil {
		return nil, &program.Exit{Code: program.ExitDenied, Err: err}
	}
	return trust.ListEnds(lists), nil
}

func (f trustFlags) write(cmd *cobra.Command, text []byte) error {
	if f.out == "" {
		_, err := cmd.OutOrStdout().Write(text)
		return err
	}
	name := f.out
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, f.name+".yaml")
	}
	return os.WriteFile(name, text, 0o644) //nolint:gosec // everything in it is public
}
