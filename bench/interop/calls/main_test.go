package calls_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"go.uber.org/goleak"
)

// With peerEnv set the test binary is the JSON-RPC server, so that it can be killed.
func TestMain(m *testing.M) {
	if os.Getenv(peerEnv) != "" {
		serveRPC(os.Args[1], os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

const peerEnv = "REDIAL_CALLS_PEER"

// oracle answers what it is asked.
type oracle struct{ log *os.File }

// Say returns the text after so many ms. It notes that it was asked, in a file that survives.
func (o oracle) Say(ctx context.Context, text string, after int) (string, error) {
	if _, err := o.log.WriteString(text + "\n"); err != nil {
		return "", err
	}
	select {
	case <-time.After(time.Duration(after) * time.Millisecond):
		return text, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// serveRPC serves on a port of loopback until standard input ends.
func serveRPC(port, log string) {
	file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	server := rpc.NewServer()
	if err := server.RegisterName("oracle", oracle{file}); err != nil {
		panic(err)
	}
	go func() { // ends with the process
		panic(http.ListenAndServe("127.0.0.1:"+port, server.WebsocketHandler([]string{"*"})))
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
}
