package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/inspect/page"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// uiFlags are the flags of ui.
type uiFlags struct {
	serviceFlags

	port      int
	noBrowser bool
	view      string
}

func newUI(by person) *cobra.Command {
	flags := uiFlags{serviceFlags: serviceFlags{by: by}}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show in a browser how images fare, which rules decide, and what a change would break",
		Long: `Ui serves a page on 127.0.0.1 until you press Ctrl+C, and opens it in your browser. The page shows what
status, check, verify --explain and preview print, and updates by itself. It reads the cluster with
your permissions, and sends no request that changes anything. If you lack a permission, the page
names it. With --config-dir, the page shows resources in files and needs no cluster.

The printed address opens the page once, in one browser. To show a view to a colleague, send the
path of the view: "landwaiter ui --open PATH" opens it with the colleague's permissions.

Your machine contacts the registries of images that you look at. Some flags of the server change
verdicts: repeat these flags with --serve-flag.

Exit codes (64 and 69: see landwaiter --help):
  0  you ended the page`,
		Example: `  landwaiter ui
  landwaiter ui --open /namespaces/team-a
  landwaiter ui --config-dir ./config/samples`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	flags.registerServer(cmd)
	f := cmd.Flags()
	f.StringVar(&flags.configDir, "config-dir", "", "directory with resources as YAML or JSON files (empty: read the cluster)")
	f.IntVar(&flags.port, "port", 0, "port on 127.0.0.1 (0: any free port)")
	f.BoolVar(&flags.noBrowser, "no-browser", false, "only print the address")
	f.StringVar(&flags.view, "open", "/", "path of the first view, such as /namespaces/team-a")
	uses(cmd, 0, flagAccount)
	return cmd
}

func (f *uiFlags) run(cmd *cobra.Command) error {
	if cmd.Flags().Changed("config-dir") && f.configDir == "" {
		return errors.New("--config-dir is empty, it must name a directory")
	}
	if !strings.HasPrefix(f.view, "/") {
		return fmt.Errorf("--open %q: it must be a path that begins with /, as the page shows it", f.view)
	}
	if f.port < 0 || f.port > 65535 {
		return fmt.Errorf("--port %d: it must be a port from 1 to 65535, or 0 for any free port", f.port)
	}
	if err := f.parseServed(); err != nil { // before anything is served
		return err
	}
	if _, err := f.Complete(); err != nil {
		return err
	}
	source, about, err := f.source(cmd.Context())
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.port)))
	if err != nil {
		return program.Failed(fmt.Errorf("serve the page: %w", err))
	}
	site, err := page.New(cmd.Context(), listener.Addr().String(), source, about, time.Now)
	if err != nil {
		return program.Failed(errors.Join(err, listener.Close()))
	}
	address := site.Address(f.view)
	program.Say(cmd.OutOrStdout(), "%s", address)
	program.Say(cmd.ErrOrStderr(), "The address opens the page once. Press Ctrl+C to end the page.")
	if !f.noBrowser {
		if err := openBrowser(cmd.Context(), address); err != nil {
			program.Say(cmd.ErrOrStderr(), "note: no browser was opened (%v): open the address yourself", err)
		}
	}
	return program.Failed(site.Serve(cmd.Context(), listener))
}

// source returns the source of the page, and its person.
func (f *uiFlags) source(ctx context.Context) (page.Source, page.About, error) {
	if f.configDir != "" {
		source := &fileSource{flags: f.serviceFlags}
		if _, err := source.Status(ctx, verify.Cluster); err != nil {
			return nil, page.About{}, err
		}
		return source, page.About{Who: "you", Where: f.configDir, Files: true}, nil
	}
	config, namespace, err := f.cluster()
	if err != nil {
		return nil, page.About{}, err
	}
	config = rest.CopyConfig(config)
	config.Timeout = requestTimeout
	where, err := readOnly(config)
	if err != nil {
		return nil, page.About{}, err
	}
	schemas := schema.Embedded()
	reader, err := live.New(config, schemas)
	if err != nil {
		return nil, page.About{}, program.Failed(err)
	}
	return &clusterSource{flags: f.serviceFlags, person: reader, schemas: schemas, config: config, within: string(namespace)},
		page.About{Who: f.who(config), Where: where, Namespace: namespace}, nil
}

// who names the user in the kubeconfig file or in --as. The API server may know another name.
func (f *uiFlags) who(config *rest.Config) string {
	if config.Impersonate.UserName != "" {
		return config.Impersonate.UserName + " (impersonated)"
	}
	raw, err := f.by.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return "you"
	}
	if found := raw.Contexts[cmp.Or(*f.by.Context, raw.CurrentContext)]; found != nil {
		return cmp.Or(*f.by.AuthInfoName, found.AuthInfo, "you")
	}
	return "you"
}

// openBrowser asks the desktop to open an address.
func openBrowser(ctx context.Context, address string) error {
	program := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		program = []string{"open"}
	case "windows":
		program = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	command := exec.CommandContext(ctx, program[0], append(program[1:], address)...) //nolint:gosec // the address is the page's own
	if err := command.Start(); err != nil {
		return err
	}
	go func() { _ = command.Wait() }() // some desktops return immediately, others with the browser
	return nil
}
