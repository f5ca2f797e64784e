"""The graph of a look-ahead folder (Kaldi's mkgraph_lookahead.sh, Vosk): HCLr.fst and Gr.fst, composed here."""
