package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// SentinelRules are the ACL rules of Landwaiter's user on a Sentinel, as in
// docs/operate/redis.md: look up the master, and subscribe to failovers.
const SentinelRules = "resetchannels &+switch-master &+replica-reconf-done +sentinel|get-master-addr-by-name +sentinel|sentinels +subscribe +ping +hello +auth"

// sentinelPassword is the password of Landwaiter's user on the Sentinel. It differs from
// the one in Redis, so that mixing them up fails.
const sentinelPassword = "only-for-sentinel"

// RedisSentinel is a master, its replica, and a Sentinel that promotes the replica soon
// after the master fails.
type RedisSentinel struct {
	Master, Replica *Redis
	Sentinel        *Process
	// URL is that of the user, with the passwords for Redis and for the Sentinel. It
	// also names a Sentinel that does not exist.
	URL string

	dir         string
	port        int
	monitored   int      // port of the master, as the Sentinel and Landwaiter know it
	certificate []string // settings
}

// TLS names the files of the certificate that servers prove, and of its CA. The zero value is no TLS.
type TLS struct{ Certificate, Key, CA string }

// StartRedisSentinel starts a RedisSentinel whose processes log below dir. With TLS, Landwaiter and the servers themselves speak
// nothing else to each other. If it fails, it leaves nothing running.
func StartRedisSentinel(ctx context.Context, dir string, secure TLS) (*RedisSentinel, error) {
	ports, err := FreePorts(7)
	if err != nil {
		return nil, err
	}
	s := &RedisSentinel{dir: filepath.Join(dir, "sentinel"), port: ports[2], monitored: ports[0]}
	scheme, sentinel, replica := "redis", ports[2], []string(nil)
	// By default, diskless replication waits seconds for further replicas.
	master := []string{"--repl-diskless-sync-delay", "0", "--masteruser", operator, "--masterauth", redisPassword,
		"--user", operator, "on", ">" + redisPassword, "~*", "&*", "+@all"}
	if secure != (TLS{}) {
		s.certificate = []string{"tls-replication yes", "tls-auth-clients no", "tls-cert-file " + secure.Certificate, "tls-key-file " + secure.Key,
			"tls-ca-cert-file " + secure.CA, "tls-port " + fmt.Sprint(ports[6])}
		scheme, sentinel, s.monitored = "rediss", ports[6], ports[4]
		for _, setting := range s.certificate[:5] {
			name, value, _ := strings.Cut(setting, " ")
			master = append(master, "--"+name, value)
		}
		replica = []string{"--tls-port", fmt.Sprint(ports[5])}
	}
	replica = append(append(replica, "--replicaof", "127.0.0.1", fmt.Sprint(s.monitored)), master...)
	if secure != (TLS{}) {
		master = append(master, "--tls-port", fmt.Sprint(s.monitored))
	}
	s.Master, s.Replica = newRedis(filepath.Join(dir, "master"), ports[0], RedisCommands, master...),
		newRedis(filepath.Join(dir, "replica"), ports[1], RedisCommands, replica...)
	s.URL = fmt.Sprintf("%s://landwaiter:%s@%s/0?master_name=landwaiter&username=landwaiter&password=%s&addr=%s",
		scheme, sentinelPassword, loopback(sentinel), redisPassword, loopback(ports[3]))
	if err := s.start(ctx); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

func (s *RedisSentinel) start(ctx context.Context) error {
	if err := s.Master.Restart(ctx); err != nil {
		return err
	}
	if err := s.Replica.Restart(ctx); err != nil {
		return err
	}
	if err := s.Replica.Await(ctx, s.Replica.follows); err != nil {
		return err
	}
	// Not earlier: it asks the master for its replicas at the start, and then every ten seconds.
	if err := s.startSentinel(); err != nil {
		return err
	}
	return s.Sentinel.Await(ctx, s.watches)
}

// startSentinel writes the configuration, in which a Sentinel also keeps its state.
func (s *RedisSentinel) startSentinel() (err error) {
	config := []string{
		"port " + fmt.Sprint(s.port), "bind 127.0.0.1", "dir " + s.dir, "user default off",
		"user landwaiter on >" + sentinelPassword + " " + SentinelRules,
		"user " + operator + " on >" + redisPassword + " &* +@all",
		"sentinel monitor landwaiter 127.0.0.1 " + fmt.Sprint(s.monitored) + " 1",
		"sentinel auth-user landwaiter " + operator, "sentinel auth-pass landwaiter " + redisPassword,
		"sentinel down-after-milliseconds landwaiter 500", "sentinel failover-timeout landwaiter 3000",
	}
	config = append(config, s.certificate...)
	if err := os.MkdirAll(s.dir, 0o750); err != nil {
		return fmt.Errorf("start a sentinel: %w", err)
	}
	file := filepath.Join(s.dir, "sentinel.conf")
	if err := os.WriteFile(file, []byte(strings.Join(config, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("start a sentinel: %w", err)
	}
	s.Sentinel, err = StartProcess(s.dir, Command{Name: "sentinel", Path: "redis-server", Args: []string{file, "--sentinel"}})
	return err
}

// follows checks that a replica is in sync with its master.
func (r *Redis) follows(ctx context.Context) error {
	client := r.Operator()
	defer client.Close()
	info, err := client.Info(ctx, "replication").Result()
	if err != nil {
		return fmt.Errorf("ask redis for its replication: %w", err)
	}
	if !strings.Contains(info, "master_link_status:up\r\n") {
		return errors.New("the replica has not caught up")
	}
	return nil
}

// watches checks that the Sentinel could replace the master.
func (s *RedisSentinel) watches(ctx context.Context) error {
	client := redis.NewSentinelClient(operatorAt(s.port))
	defer client.Close()
	replicas, err := client.Replicas(ctx, "landwaiter").Result()
	if err != nil {
		return fmt.Errorf("ask the sentinel: %w", err)
	}
	if len(replicas) != 1 || replicas[0]["flags"] != "slave" || replicas[0]["master-link-status"] != "ok" {
		return fmt.Errorf("the sentinel does not know the replica: %v", replicas)
	}
	return nil
}

// Refused returns the ACL denials since the start, of the Sentinel, and of the master and
// its replica if they run.
func (s *RedisSentinel) Refused(ctx context.Context) (all []string, err error) {
	for _, port := range []int{s.port, s.Master.port, s.Replica.port} {
		refused, err := refusedAt(ctx, port)
		if err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, err
		}
		all = append(all, refused...)
	}
	return all, nil
}

// Kill kills all processes.
func (s *RedisSentinel) Kill() {
	for _, server := range []*Redis{s.Master, s.Replica} {
		if server.Process != nil {
			server.Kill()
		}
	}
	if s.Sentinel != nil {
		s.Sentinel.Kill()
	}
}
