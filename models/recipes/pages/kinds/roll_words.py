"""What tills print: labels, sums, titles and closing lines."""

UNITS = ("G", "ML", "KG", "L", "PCS", "MM", "'S", "GM", "PKT", "CM", "INCH", "PC")
LABELS = (
    "Invoice No", "Inv No.", "Receipt No", "Bill No", "Doc No", "Document No", "Date", "DATE",
    "Time", "Cashier", "Counter", "Salesperson", "Trans. No", "Terminal", "Table", "Pax", "Member",
    "Ref No", "Order", "Till", "Staff", "Served by", "POS", "Shift", "Chk", "Reg", "Printed",
    "Due Date", "Tran#", "Customer", "A/C No", "Job No", "Sales Code", "Check In", "Guest", "Pump",
    "Vehicle No", "Slip",
)  # fmt: skip
SUMS = (
    "Sub Total", "SUBTOTAL", "Sub-Total", "Total Excl. GST", "Total Amount (Excl GST)", "GST @ 6%",
    "GST 6%", "Total GST", "Add GST", "Total Incl. GST", "TOTAL (INCL GST)", "Discount",
    "Total Discount", "Service Charge 10%", "SST 6%", "Service Tax", "VAT 20%", "Rounding",
    "Rounding Adj", "ROUND ADJ", "Rounding Adjustment", "TOTAL", "Total", "Grand Total",
    "NET TOTAL", "Nett Total", "Total Amount", "Total Sales (Inclusive of GST)", "TOTAL DUE",
    "Amount Due", "Total Rounded", "Total Payable", "CASH", "Cash", "Cash Received", "PAID",
    "Paid Amount", "CHANGE", "Change", "Change Due", "VISA", "VISA CARD", "Master", "Debit Card",
    "Voucher", "Deposit", "Balance", "Tax", "Tax 8.25%", "Tip",
)  # fmt: skip
COUNTS = ("Total Qty", "Item(s)", "TOTAL QTY", "No. of items", "Total Item", "Qty", "ITEMS SOLD")
TITLES = (
    "TAX INVOICE", "Tax Invoice", "TAX INVOICE", "SIMPLIFIED TAX INVOICE", "INVOICE", "CASH BILL",
    "RECEIPT", "OFFICIAL RECEIPT", "Cash Sales", "CASH RECEIPT", "** DUPLICATE **", "Sales Receipt",
    "-TAX INVOICE-", "Receipt", "CUSTOMER COPY", "Self Collect", "TAKE AWAY", "*** REPRINT ***",
)  # fmt: skip
CLOSINGS = (
    "THANK YOU", "Thank You, Please Come Again", "THANK YOU FOR SHOPPING WITH US",
    "*** THANK YOU ***", "Goods sold are not returnable",
    "GOODS SOLD ARE NOT RETURNABLE & REFUNDABLE", "Have a nice day!", "PLEASE KEEP THIS RECEIPT",
    "Exchange within 7 days with receipt", "This is a computer generated",
    "No signature is required", "PRICES INCLUSIVE OF GST", "All prices are in RM",
    "Follow us on Facebook", "for exchange or refund within 3 days", "Thank you and see you again",
    "NO REFUND FOR CASH", "Customer care line", "E.& O.E.", "Deposit is not refundable",
    "Powered by", "SHOP ONLINE AT", "GOODS SOLD ARE NON REFUNDABLE", "Merci", "Vielen Dank",
    "Thank you for your patronage",
)  # fmt: skip
HEADS = {
    2: (("ITEM", "AMOUNT"), ("Description", "Total"), ("Item", "RM"), ("DESC", "AMT(RM)")),
    3: (("Qty", "Description", "Amount"), ("QTY", "ITEM", "TOTAL"), ("Description", "Qty", "Amt")),
    4: (
        ("Description", "Qty", "Price", "Amount"), ("Item", "Qty", "U/P", "Total"),
        ("ITEM", "QTY", "PRICE", "AMT"), ("Item", "Qty", "S/Price", "Amount"),
        ("Code/Desc", "Qty", "U.Price", "Amt"), ("DESC", "QTY", "RM", "RM"),
    ),
    5: (("Item", "Qty", "Price", "Disc", "Amt"), ("ITEM", "QTY", "U.P", "AMT", "TAX")),
}  # fmt: skip
