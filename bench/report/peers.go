package report

import (
	"context"

	"github.com/redial-go/redial/bench/peers"
)

// peersPlan is the chapter of what "bench peers" has measured.
func peersPlan(o Options) plan {
	p := plan{id: "peers", title: "Beside other libraries: measured on real sockets"}
	if o.Peers == "" {
		p.text = []string{`There is no measurement in this report. "bench peers -json peers.json" makes one, and "bench report -peers peers.json" shows it here.`}
		return p
	}
	p.text = []string{
		"redial beside other libraries on loopback; each client that is measured has a process of its own, and so has its server. A figure is minimum / median / maximum of all rounds, in each of which the peers are measured one after the other in a random order.",
		"A ratio is that of two measurements of one round. coder (A/A) is coder measured a second time: what is as close to 1 as that is noise.",
	}
	r, err := peers.ReadFile(o.Peers)
	if err != nil {
		p.figures = []drawing{func(context.Context) (*Figure, error) { return nil, err }}
		return p
	}
	p.figures = []drawing{func(context.Context) (*Figure, error) {
		return &Figure{Title: "What messages, redials and idle connections cost", Pictures: r.Pictures()}, nil
	}}
	for _, row := range r.Rows {
		p.figures = append(p.figures, func(context.Context) (*Figure, error) {
			head, lines := row.Table()
			return &Figure{Title: row.Title, Text: row.Remarks(), Tables: []Table{{Head: head, Rows: lines}}}, nil
		})
	}
	return p
}
