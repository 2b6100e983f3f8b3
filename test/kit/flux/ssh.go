package flux

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSHServer serves the repositories of a [GitServer] for reading, over SSH on loopback. A deploy key
// opens one repository.
type SSHServer struct {
	git      *GitServer
	listener net.Listener
	host     ssh.Signer

	mu   sync.Mutex
	keys map[string]string // names of repositories, by the key that opens them
}

// repositoryOf is the permission with the repository that a key opens.
const repositoryOf = "repository"

// StartSSH starts a server for the same repositories, with a host key of its own.
func (g *GitServer) StartSSH(ctx context.Context) (*SSHServer, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a host key: %w", err)
	}
	s := &SSHServer{git: g, keys: map[string]string{}}
	if s.host, err = ssh.NewSignerFromKey(private); err != nil {
		return nil, fmt.Errorf("make a host key: %w", err)
	}
	if s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("listen for SSH: %w", err)
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if name, ok := s.keys[string(key.Marshal())]; ok {
			return &ssh.Permissions{Extensions: map[string]string{repositoryOf: name}}, nil
		}
		return nil, errors.New("no repository has this key")
	}}
	config.AddHostKey(s.host)
	go func() {
		for {
			connection, err := s.listener.Accept()
			if err != nil {
				return // it was closed
			}
			go s.serve(connection, config)
		}
	}()
	return s, nil
}

// Close ends the server.
func (s *SSHServer) Close() { _ = s.listener.Close() } // nobody asks any more

// URL is what Flux fetches a repository from.
func (s *SSHServer) URL(name string) string {
	return "ssh://git@" + s.listener.Addr().String() + "/" + name + ".git"
}

// KnownHosts is what ssh-keyscan prints of the server.
func (s *SSHServer) KnownHosts() string {
	return knownhosts.Line([]string{s.listener.Addr().String()}, s.host.PublicKey()) + "\n"
}

// Authorize lets a deploy key, as authorized_keys has it, read a repository.
func (s *SSHServer) Authorize(name, key string) error {
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key))
	if err != nil {
		return fmt.Errorf("read the deploy key of %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[string(public.Marshal())] = name
	return nil
}

// serve answers one connection, whatever becomes of it: its client sees errors.
func (s *SSHServer) serve(connection net.Conn, config *ssh.ServerConfig) {
	server, channels, requests, err := ssh.NewServerConn(connection, config)
	if err != nil {
		_ = connection.Close()
		return
	}
	defer func() { _ = server.Close() }()
	go ssh.DiscardRequests(requests)
	for asked := range channels {
		if asked.ChannelType() != "session" {
			_ = asked.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		channel, requests, err := asked.Accept()
		if err != nil {
			return
		}
		go s.session(channel, requests, server.Permissions.Extensions[repositoryOf])
	}
}

// session runs the one command that reads a repository.
func (s *SSHServer) session(channel ssh.Channel, requests <-chan *ssh.Request, name string) {
	defer func() { _ = channel.Close() }()
	for request := range requests {
		if request.Type != "exec" {
			_ = request.Reply(request.Type == "env", nil)
			continue
		}
		var asked struct{ Command string }
		fine := ssh.Unmarshal(request.Payload, &asked) == nil && asked.Command == "git-upload-pack '/"+name+".git'"
		_ = request.Reply(fine, nil)
		if !fine {
			return
		}
		var status struct{ Code uint32 }
		if err := s.upload(channel, name); err != nil {
			status.Code = 1
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
		return
	}
}

// upload runs git's own program. Its input ends with it, and not with the client's.
func (s *SSHServer) upload(channel ssh.Channel, name string) error {
	command := exec.Command("git", "upload-pack", filepath.Join(s.git.dir, strings.TrimSuffix(name, ".git")+".git"))
	command.Env = append([]string{"PATH=" + os.Getenv("PATH")}, isolated()...)
	command.Stdout, command.Stderr = channel, channel.Stderr()
	input, err := command.StdinPipe()
	if err != nil {
		return fmt.Errorf("start git upload-pack: %w", err)
	}
	go func() {
		_, _ = io.Copy(input, channel) // it ends with the channel, or the program
		_ = input.Close()
	}()
	return command.Run()
}
