"""Graphs of CTC nets: H in a topology of units and blank, alone (H), with a lexicon (HL) or a language model too (HLG).

Here belong what spells words in units, what lays H over them and what opens such graphs of other tools; not the nets.
"""
