// Package report draws what the simulators of this module find, as one HTML file that
// needs no other, and as a directory of pictures (SVG).
//
// A report has a [Chapter] for each of the articles whose simulations this module
// reproduces: the 17 scenarios of package queueing and the letter diagram of package
// timeline, the storm of package storm, AWS's contention; and one for our own
// model, the herd. Each figure is simulated when it is drawn, from one seed and without a clock: the
// same [Options] give the same report.
//
// A strategy has one colour in all of them: see styleOf.
package report
