// Package herd has the commands about clients that lose their server all at once: what the
// models say ([fleet], [lone], [rotation], [drain]), what real sockets say ([lab]), and
// the tables by which the library's defaults were chosen.
package herd

import (
	"os"

	"github.com/redial-go/redial/bench/herd/lab"
	"github.com/redial-go/redial/bench/internal/cli"
)

// Commands are the commands of "bench".
func Commands() []cli.Command {
	return []cli.Command{
		{Name: "herd", Summary: "kill the server of a real herd on real sockets, and measure how the herd comes back", Example: "-n 500 -policy redial,fixed", New: cli.New[realHerd]},
		{Name: "lone", Summary: "compute how late one client is back, by circumstance and policy", Example: "-policy redial,own:base=1s,cap=5s -only hung", New: cli.New[loneClients]},
		{Name: "defaults", Summary: "compute the tables of DEFAULTS.md, by which the defaults were chosen", Example: "-table troubles -largest 1000", New: cli.New[defaults]},
	}
}

// Models are the models of "bench sim".
func Models() []cli.Command {
	return []cli.Command{
		{Name: "fleet", Summary: "connections lost at once, an outage, and a server with a queue", Example: "-policy redial,full,fixed -svg fleet.svg", New: cli.New[simulatedFleet]},
		{Name: "rotation", Summary: "clients that were started together and replace each connection at its age, with and without a draw", Example: "-after 1h -svg rotation.svg", New: cli.New[simulatedRotation]},
		{Name: "drain", Summary: "a server that gets rid of its clients before it ends: at once, in batches, by the rules of others, each at a draw of its own", Example: "-way cut,drain -svg drain.svg", New: cli.New[simulatedDrain]},
	}
}

// ServeChild runs the server of a measurement if this process was started as one, and
// then ends the process.
func ServeChild() {
	if lab.IsServer() {
		os.Exit(lab.ServerMain())
	}
}
