// Package report draws what the simulators of this module find, as one HTML file that
// needs no other, and as a directory of pictures (SVG and PNG).
//
// A report has a [Chapter] for each of the seeds (seeds.md): document 002's 17 scenarios
// and its letter diagram, document 004's storm, AWS's contention; one for our own
// model, the herd; and one for what "bench herd" has measured, if it is given files
// of it. Each figure is simulated when it is drawn, from one seed, and no clock is
// asked: the same [Options] give the same report.
//
// A strategy has one colour in all of them: see styleOf.
package report
