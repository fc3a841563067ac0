"""How numbers became others: in another unit or type, at other places, several made of several."""
