package netconn

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/redial-go/redial/dialer"
)

// sshServer is a server with one account, whose only command, cat, sends back what it gets.
func sshServer(t *testing.T, key ssh.Signer) string {
	config := &ssh.ServerConfig{PasswordCallback: func(ssh.ConnMetadata, []byte) (*ssh.Permissions, error) { return nil, nil }}
	config.AddHostKey(key)
	return serve(t, func(nc net.Conn) {
		defer nc.Close()
		_, channels, requests, err := ssh.NewServerConn(nc, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests) // ends with nc
		for asked := range channels {
			channel, requests, err := asked.Accept()
			if err != nil {
				return
			}
			for r := range requests {
				if _ = r.Reply(r.Type == "exec", nil); r.Type == "exec" {
					break
				}
			}
			go ssh.DiscardRequests(requests) // ends with the channel
			_, _ = io.Copy(channel, channel)
			_, _ = channel.SendRequest("exit-status", false, make([]byte, 4))
			channel.Close()
		}
	})
}

// SSH gets 4 MiB back through a NetConn, and sees the address of the server in its HostKeyCallback.
func TestSSHOverANetConn(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	url := sshServer(t, key)
	nc, err := dial(t.Context(), &dialer.WebSocket{URL: url})
	require.NoError(t, err)
	defer nc.Close()
	var at net.Addr
	c, channels, requests, err := ssh.NewClientConn(nc, "ssh.test:22", &ssh.ClientConfig{
		User: "user", Auth: []ssh.AuthMethod{ssh.Password("")},
		HostKeyCallback: func(name string, a net.Addr, k ssh.PublicKey) error {
			at = a
			return ssh.FixedHostKey(key.PublicKey())(name, a, k)
		},
	})
	require.NoError(t, err)
	client := ssh.NewClient(c, channels, requests)
	defer client.Close()
	require.Equal(t, url, "ws://"+at.String())
	session, err := client.NewSession()
	require.NoError(t, err)
	sent := make([]byte, 4<<20)
	_, _ = rand.Read(sent)
	session.Stdin = bytes.NewReader(sent)
	got, err := session.Output("cat")
	require.NoError(t, err)
	require.True(t, bytes.Equal(sent, got), "%d bytes", len(got))
}
