package lab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// serverArgument is the hidden argument; what follows is a setup.
const serverArgument = "lab-server"

// IsServer reports whether this process was started to be a server of this package.
// If so it must call [ServerMain] and exit with what that returns.
func IsServer() bool { return len(os.Args) == 3 && os.Args[1] == serverArgument }

// ServerMain is a server process: it waits for a first line on standard input,
// listens then, and reports on standard output until standard input ends. Each
// further line asks for a report at once. Ctrl-C is for the parent to judge.
func ServerMain() int {
	signal.Ignore(os.Interrupt)
	out := json.NewEncoder(os.Stdout)
	var s setup
	if err := json.Unmarshal([]byte(os.Args[2]), &s); err != nil {
		fmt.Fprintln(os.Stderr, "lab-server: read setup:", err)
		return 2
	}
	if _, err := RaiseFiles(); err != nil {
		fmt.Fprintln(os.Stderr, "lab-server:", err)
	}
	in := bufio.NewScanner(os.Stdin)
	if !in.Scan() {
		return 0 // the parent is gone
	}
	y, err := s.open()
	if err != nil {
		_ = out.Encode(report{At: time.Now().UnixNano(), Asked: true, Err: err.Error()})
		return 1
	}
	go func() { _ = y.http.Serve(y.listener) }() // until the process ends
	return y.tell(in, out)
}

// tell reports until in ends.
func (y *server) tell(in *bufio.Scanner, out *json.Encoder) int {
	asked := make(chan struct{})
	go func() { // until the process ends
		defer close(asked)
		for in.Scan() {
			asked <- struct{}{}
		}
	}()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	answer := true // that it listens
	for {
		r := y.report()
		r.Asked = answer
		if out.Encode(r) != nil {
			return 1
		}
		select {
		case <-tick.C:
			answer = false
		case _, ok := <-asked:
			if !ok {
				return 0
			}
			answer = true
		}
	}
}
