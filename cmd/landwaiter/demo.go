package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/pkg/provider"
	"github.com/landwaiter/landwaiter/pkg/serving"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func newDemo() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use:   "demo [--once]",
		Short: "Show the whole thing at work, in this process",
		Long: `Demo starts a registry and the provider in this process, makes keys and
certificates, pushes and signs images for two teams, loads resources for them, and
sends Gatekeeper's requests over mutual TLS. It prints who may use what, and why.

Then it stays up for you to try, until you interrupt it. With --once it ends, with
exit code 1 if any verdict was not the expected one.`,
		Example: "  landwaiter demo --once",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), once)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "end after the table instead of staying up")
	return cmd
}

// demo runs the scene. Everything that it writes is in one directory, which it
// removes.
func demo(ctx context.Context, out, errOut io.Writer, once bool) (err error) {
	dir, err := os.MkdirTemp("", "landwaiter-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Fprintln(out, "Making keys and certificates, starting a registry, pushing and signing images …")
	stage := &scene{dir: dir}
	if stage.registry, err = fixture.StartRegistry(fixture.RegistryOptions{TLS: true}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.registry.Close()) }()
	by, err := newSigners()
	if err != nil {
		return err
	}
	if err := stage.build(ctx, by); err != nil {
		return err
	}
	resources, err := stage.writeResources(by)
	if err != nil {
		return err
	}
	gatekeeper, options, files, err := stage.certificates()
	if err != nil {
		return err
	}
	log := logrus.New()
	log.SetOutput(errOut)
	log.SetLevel(logrus.ErrorLevel) // denials are what the table shows
	return stage.play(ctx, out, gatekeeper, options, files, resources, log, once)
}

// certificates makes the provider's certificate and Gatekeeper's, and writes
// them as files, as they would be mounted.
func (s *scene) certificates() (*gatekeeper, provider.Options, serving.Options, error) {
	const clientName = "gatekeeper-webhook-service.gatekeeper-system.svc"
	authority, err := fixture.NewAuthority("demo CA")
	if err != nil {
		return nil, provider.Options{}, serving.Options{}, err
	}
	server, err := authority.IssueServer("127.0.0.1", "localhost")
	if err != nil {
		return nil, provider.Options{}, serving.Options{}, err
	}
	client, err := authority.IssueClient(clientName, clientName)
	if err != nil {
		return nil, provider.Options{}, serving.Options{}, err
	}
	at := func(name string) string { return filepath.Join(s.dir, name) }
	for name, pem := range map[string][]byte{"ca.crt": authority.CertificatePEM, "tls.crt": server.CertificatePEM, "tls.key": server.KeyPEM,
		"gatekeeper.crt": client.CertificatePEM, "gatekeeper.key": client.KeyPEM} {
		if err := os.WriteFile(at(name), pem, 0o600); err != nil {
			return nil, provider.Options{}, serving.Options{}, err
		}
	}
	options := provider.Options{
		Address: "127.0.0.1:0", HealthAddress: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0",
		ClientNames: []string{clientName},
	}
	files := serving.Options{CertificateFile: at("tls.crt"), KeyFile: at("tls.key"), ClientCAFiles: []string{at("ca.crt")}}
	return newGatekeeper(authority, client), options, files, nil
}

// play starts the provider, asks it everything, and stays if it should.
func (s *scene) play(ctx context.Context, out io.Writer, asking *gatekeeper, options provider.Options, files serving.Options, resources string, log *logrus.Logger, once bool) error {
	d, err := (&engineFlags{}).newDesk(false)
	if err != nil {
		return err
	}
	defer d.client.Close()
	options.Ready = d.set.Ready
	if options.TLS, err = serving.New(nil, log, files); err != nil {
		return err
	}
	server, err := provider.New(d, d, log, options)
	if err != nil {
		return err
	}
	if err := server.Listen(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx, server, resources, log) }()
	asking.url = "https://" + server.Address()
	if err := waitReady(ctx, "http://"+server.HealthAddress()+"/readyz", ended); err != nil {
		return err
	}
	wrong, err := s.table(ctx, out, asking)
	if err != nil {
		return err
	}
	if !once {
		s.invite(out, asking.url, server.MetricsAddress(), resources)
		<-ctx.Done()
	}
	stop()
	if err := <-ended; err != nil {
		return err
	}
	if wrong > 0 {
		return &exitError{code: exitDenied, err: fmt.Errorf("%d verdicts were not the expected ones", wrong)}
	}
	return nil
}

// invite says what to try while the demo is up.
func (s *scene) invite(out io.Writer, url, metrics, resources string) {
	body := `{"apiVersion":"externaldata.gatekeeper.sh/v1beta1","kind":"ProviderRequest","request":{"keys":["` + s.asks[0].key + `"]}}`
	fmt.Fprintf(out, `
The provider stays up at %s. Ask it as Gatekeeper does:

  curl --cacert %[2]s/ca.crt --cert %[2]s/gatekeeper.crt --key %[2]s/gatekeeper.key \
    -H 'Content-Type: application/json' -d '%s' %s/v1/verify

Its metrics are at http://%s/metrics. Edit the resources in
  %s
and ask again. Interrupt (Ctrl-C) to end; everything that was written is removed.
`, url, s.dir, body, url, metrics, resources)
}
